// A model as data: a list of named blocks of layers with shapes, parameters and FLOPs. It is
// independent of devices; nn/ builds it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/enum_names.h"
#include "base/parameters.h"
#include "models/position_slices.h"
#include "models/rotary.h"
#include "tensor/shape.h"
#include "tensor/weight_format.h"

namespace thinwire {

// Kinds of layer.
enum class LayerKind {
  kConv2d,     // square kernel, stride, padding, optional bias; channels-last
  kBatchNorm,  // over the last axis; eps 1e-5, momentum 0.1
  kReLU,
  kMaxPool,        // square kernel, stride, padding
  kGlobalAvgPool,  // [batch, h, w, c] -> [batch, c]
  kFlatten,        // [batch, h, w, c] -> [batch, c h w], in PyTorch's (NCHW) order
  kLinear,         // y = x W^T + b over the last axis, of any rank from 2
  kLayerNorm,      // over the last axis of each row; eps 1e-5
  kMaxout,         // the greatest of each `group` neighbours along the last axis
  kResize,         // keeps the first `out_features` of the last axis, or appends zeros
  kResidual,       // y = body(x) + shortcut(x); an empty shortcut is the identity

  // Layers of sequences. Only the first layer of a model takes token ids.
  kEmbedding,          // [batch, positions] ids -> [batch, positions, features], a row for each id
  kPositionEmbedding,  // adds to each position its own row
  kRmsNorm,            // over the last axis, no mean and no bias (Zhang & Sennrich, 2019)
  kGelu,               // Hendrycks & Gimpel, 2016
  kSwiglu,             // [..., 2 f] -> [..., f]: silu(first half) * second half (Shazeer, 2020)
  // [batch, positions, (heads + 2 kv_heads) head_size] -> [..., heads head_size].
  kAttention,
  kHeadNorm,       // RMS norm of each head of queries and keys, before kAttention
  kDropout,        // in training only
  kSequence,       // [batch, h, w, c] -> [batch, h w, c], row by row
  kClassToken,     // puts one row, a parameter, before the positions (Devlin et al., 2019)
  kTypeEmbedding,  // adds the row of each position's type (TokenTypes in nn/ops.h)
  kFirst,          // [batch, positions, features] -> [batch, features], the first position
  kTanh,

  // The layers below cannot stand in experiment files. The first four are of tensor-parallel parts
  // (models/parts.h, models/sliced_positions.h).
  kSum,       // the sum of what its body's parts make of x, and a bias
  kPart,      // its body, one layer after the other
  kToSlices,  // takes slices of whole samples
  kToWhole,   // makes whole samples of their slices

  // Layers of bottlenecks (models/bottleneck.h). W has orthonormal rows.
  kProject,  // y = x W^T   W: [out, in]
  kExpand,   // y = x W     W: [in, out], that of the kProject layer named by `copies`
  kAnchor,   // adds to each position the row of its token id, or subtracts it
};

// Form of GELU: x Phi(x) itself, or its approximation with a hyperbolic tangent, which GPT-2 uses.
enum class GeluForm { kTanh, kExact };

// Number that stands for no token id.
inline constexpr int64_t kNoId = -1;

// Rows of a fused weight or bias that are a tensor of their own in files.
struct FilePart {
  std::string name;  // name of the tensor; in a LayerSpec without ".weight" or ".bias"
  int64_t rows = 0;
};

// Rows and columns of a whole parameter that one of its tensor-parallel parts has, or the part to
// which a parameter belongs that is no slice.
struct ParameterSlice {
  std::string whole;             // name of the whole; empty: the parameter is whole itself
  Shape shape;                   // of the whole
  std::vector<IndexRange> rows;  // of the whole that stand in the part, in ascending order
  IndexRange columns;            // of a matrix
  int part = -1;                 // index of the part; -1: the parameter is of no part

  bool is_of_part() const { return part >= 0; }
};

// Name, shape and initial values of one parameter or buffer of a layer.
struct ParameterSpec {
  // Initial values. Uniform in +-1/sqrt(fan_in), or in +-sqrt(6 / (fan_in + fan_out)) (Glorot &
  // Bengio, 2010); or normal with mean 0 and `deviation`; or normal with the rows then made
  // orthonormal.
  enum class Init { kUniformFanIn, kXavierUniform, kZeros, kOnes, kNormal, kOrthonormal };
  // Roles in training. A frozen parameter keeps its values: it has no gradient, and the optimizer
  // does not know it. Running statistics are written by forward passes.
  enum class Role { kTrained, kFrozen, kStatistics };
  std::string name;  // PyTorch's name: "layer1.0.conv1.weight"
  Shape shape;       // PyTorch's layout: convolutions OIHW, linear [out, in]
  Init init = Init::kZeros;
  int64_t fan_in = 0;
  Role role = Role::kTrained;
  int64_t fan_out = 0;
  double deviation = 0;  // of kNormal
  // Name of the parameter, elsewhere in the model, that this one is a copy of; empty: none. Both
  // start equal and take the sum of both gradients; files have only the original.
  std::string tied_to = {};
  // Form in files: transposed to [in, out], as GPT-2's; and divided into these tensors, if there
  // are any.
  bool transposed = false;
  std::vector<FilePart> parts = {};
  // True for the weight of a convolution or linear layer that is not at an end of the model, and
  // for a basis.
  bool hidden = false;
  // True if the rows are orthonormal and stay so: it is trained on the Stiefel manifold, with the
  // optimizer's learning rate times `rate`.
  bool orthonormal = false;
  double rate = 1;
  // Parameter of the same segment, [k, features] with orthonormal rows, in whose span this one
  // stays; empty: none. Of a linear layer's weight the columns stay in it, of any other parameter
  // the rows.
  std::string within = {};
  // Part of a whole: `parts`, `transposed`, `fan_in` and `fan_out` are then of the whole, and so
  // are initial values, of which this one has its rows and columns.
  ParameterSlice slice = {};
  // Slices on which its layer works. Its gradient is their sum, in ascending order, each from zero.
  PositionSlices slices = {};
  // How it is held in memory; other than kFP32 only if it is frozen.
  WeightFormat format = WeightFormat::kFP32;

  bool is_trained() const { return role == Role::kTrained; }
};

// Rows and columns of the weight of a whole linear layer, or heads of a whole attention.
struct LayerSlice {
  std::string whole;  // name of the whole layer; empty: the layer is whole itself
  int64_t in_features = 0, out_features = 0;  // kLinear: of the whole
  std::vector<IndexRange> rows;               // kLinear: as in ParameterSlice
  IndexRange columns;
  int64_t first_head = 0;  // kAttention: index of the first head in the whole
};

// An adapter of rows of a linear layer's weight (models/lora.h).
struct AdapterSpec {
  std::string name;  // of the linear layer in files: "model.layers.0.self_attn.q_proj"
  IndexRange rows;   // of the layer's output features
};

// One layer. A field belongs to the kinds of layer that are named with it.
struct LayerSpec {
  LayerKind kind = LayerKind::kReLU;
  std::string name;  // full dotted prefix of its parameters: "layer1.0.conv1"; empty if it has none
  // Features, or channels of an image, of kConv2d, kLinear and the norms, where both are equal.
  // When a model is built, an in_features of 0 is filled in from the shape.
  int64_t in_features = 0, out_features = 0;
  int64_t kernel = 0, stride = 1, padding = 0;                    // of windows, in pixels
  bool bias = false;                                              // kConv2d, kLinear, kLayerNorm
  ParameterSpec::Init init = ParameterSpec::Init::kUniformFanIn;  // kConv2d, kLinear: of the weight
  int64_t group = 0;                                              // kMaxout: number of features
  // kResidual. kSum: its body is layers of kPart, which have a body each.
  std::vector<LayerSpec> body, shortcut;

  // Number of rows. kEmbedding: 0 stands for the model's classes. kTypeEmbedding: of types.
  // kPositionEmbedding: at least the number of positions; 0 stands for that number.
  int64_t vocabulary = 0, context = 0;
  // kPositionEmbedding: whether its parameter is [1, context, features] and called as the layer.
  bool is_bare = false;
  // kTypeEmbedding: id of the token that ends a text; kNoId: all types are 0.
  int64_t separator = kNoId;
  // Deviation of the normal distribution from which a weight of kConv2d, kLinear or a table starts;
  // a bias then starts at zero. 0, for the first two only: `init` decides.
  double deviation = 0;
  // True for the first and the last layer of the model that has a weight matrix or a table; filled
  // in when the model is built.
  bool is_end = false;
  bool frozen = false;  // whether its parameters are frozen (models/frozen.h)
  // kLinear, frozen: how its weight is held in memory (models/base_weights.h).
  WeightFormat format = WeightFormat::kFP32;
  // kLinear: adapters of its rows, ascending; their rank, scale and dropout.
  std::vector<AdapterSpec> adapters;
  int64_t adapter_rank = 0;
  double adapter_scale = 1, adapter_dropout = 0;
  // Names of layers; empty: none. `copies`, of kProject and kExpand: the layer whose weight this
  // one copies; of kAnchor: the layer whose fixed table it copies. `shares`, of kAnchor: the layer
  // of this segment whose table it uses.
  std::string shares, copies;
  bool trained = false;  // kProject, kExpand, kAnchor: whether it is trained or fixed
  double rate = 1;       // kProject, kExpand: see ParameterSpec
  // kAnchor, trained: the table is [vocabulary, rank] times a fixed [rank, features] with
  // orthonormal rows. Otherwise it is [vocabulary, features].
  int64_t rank = 0;
  bool subtracts = false;  // kAnchor: subtracts its rows
  // kAnchor, fixed and subtracting from a code: name of the kProject layer before it.
  std::string through;
  // kLinear, kEmbedding, kPositionEmbedding: layer whose weight is the basis, see ParameterSpec.
  std::string within;
  std::string tied_to;          // kLinear: the embedding layer whose weight this one copies
  bool transposed = false;      // kLinear: see ParameterSpec
  std::vector<FilePart> parts;  // kLinear, kHeadNorm: parts of its output features, in order
  std::string bias_name;        // kLinear: name of its bias in files; empty: NAME.bias
  double epsilon = 1e-5;        // of a norm: added to the variance or the mean square
  GeluForm gelu = GeluForm::kTanh;
  // kAttention, kHeadNorm: number of heads of queries, and of heads of keys and values (0: as
  // many), which neighbouring heads of queries share (Ainslie et al., 2023).
  int64_t heads = 0, kv_heads = 0;
  // kAttention: base of the rotary embedding (models/rotary.h), 0: none; and its scaling.
  double rope_theta = 0;
  RopeScaling rope_scaling;
  // kAttention: whether a position sees only itself and those before it. Otherwise it sees all of
  // its sample, up to the last whose id is not `pad`; kNoId: all.
  bool causal = true;
  int64_t pad = kNoId;
  // kAttention, causal: number of positions that one sees at most, itself included; 0: any.
  int64_t window = 0;
  double dropout = 0;  // kDropout, and kAttention for its weights: in [0, 1)
  LayerSlice slice;    // kLinear, kAttention: part of a whole
  int part = 0;        // kPart: index among all parts, from 0
  // Slices on which the layer works. kSum: between them its parts have whole samples.
  PositionSlices slices;

  // Shapes of one sample, with batch extent 1; filled in when the model is built.
  Shape in, out;
};

// A block of layers; a cut can come after it.
struct BlockSpec {
  std::string name;  // "stem", "layer1.0", "head"
  std::vector<LayerSpec> layers;
  Shape in, out;  // of one sample, with batch extent 1
};

// A whole model.
struct Model {
  std::string name;
  std::vector<BlockSpec> blocks;
  Shape input;  // of one sample, with batch extent 1; with `tokens` [1, positions] ids
  int64_t classes = 0;
  bool tokens = false;    // True: the input is token ids.
  int64_t positions = 1;  // number of labels of one sample

  // Returns whether it has logits for each position of a sequence of tokens.
  bool is_language() const { return tokens && blocks.back().out.rank() == 3; }
};

// Returns the parameters and buffers in model order, like PyTorch's state_dict (weight, bias,
// running_mean, running_var; there is no num_batches_tracked).
std::vector<ParameterSpec> Parameters(const LayerSpec& layer);
std::vector<ParameterSpec> Parameters(const BlockSpec& block);
// Returns the number of trainable elements; copies of other parameters are not counted.
int64_t TrainableParameters(const Model& model);

// Returns the spelling in experiment files: "conv", "global_avg_pool". FromName is its inverse;
// InvalidArgument lists the known names.
const char* Name(LayerKind kind);
absl::Status FromName(const std::string& name, LayerKind* to);
std::vector<LayerKind> AllLayerKinds();

// Returns the names in experiment files: "tanh" (base/enum_names.h).
NameTable<GeluForm> TableOf(GeluForm);

// Calls visit(layer) for the layers, each before those inside it.
template <typename Layers, typename Visit>
void ForEachLayer(Layers& layers, const Visit& visit) {
  for (auto& layer : layers) {
    visit(layer);
    ForEachLayer(layer.body, visit);
    ForEachLayer(layer.shortcut, visit);
  }
}

// Returns whether such a layer has a name, for its parameters or its random numbers.
bool HasName(LayerKind kind);

// Returns whether the layer keeps its input for the backward pass. A residual layer does if the
// first layer of its body or of its shortcut does. A frozen layer does not keep what only its
// weight's gradient needs.
bool KeepsInput(const LayerSpec& layer);

// Returns whether training draws random numbers in one of these layers.
bool IsRandom(const std::vector<LayerSpec>& layers);

// Returns whether one of these layers needs the samples' token ids, wherever in the model it is.
bool ReadsIds(const std::vector<LayerSpec>& layers);

// Returns the first of these layers that works on whole sequences only, not on positions that come
// one after another; null if there is none.
const LayerSpec* NeedsWholeSequences(const std::vector<LayerSpec>& layers);

// Returns whether the model predicts each token from those before it.
bool IsCausalLanguage(const Model& model);

// Returns the size of a head, from the shape of the input of kAttention or kHeadNorm. Heads of
// queries, keys and values are equal.
int64_t HeadSize(const LayerSpec& attention);

// Returns a layer of that kind without parameters.
LayerSpec NewLayer(LayerKind kind, std::string name = "");

// Returns a layer of that kind with the defaults for everything that an experiment may leave out.
LayerSpec DefaultLayer(LayerKind kind);

// Calls visit(name, field, presence) for each parameter of the kind (base/parameters.h). The stride
// of a max-pool is its kernel unless given.
template <typename Spec, typename Visit, ForSpec<Spec, LayerSpec> = 0>
void VisitParameters(Spec& layer, Visit&& visit) {
  switch (layer.kind) {
    case LayerKind::kConv2d:
      visit("out", layer.out_features, Presence::kRequired);
      visit("kernel", layer.kernel, Presence::kRequired);
      visit("stride", layer.stride, Presence::kWritten);
      visit("padding", layer.padding, Presence::kWritten);
      visit("bias", layer.bias, Presence::kWritten);
      break;
    case LayerKind::kLinear:
      visit("out", layer.out_features, Presence::kRequired);
      visit("bias", layer.bias, Presence::kWritten);
      visit("deviation", layer.deviation, Presence::kOptional);
      visit("tied_to", layer.tied_to, Presence::kOptional);
      break;
    case LayerKind::kEmbedding:
      visit("out", layer.out_features, Presence::kRequired);
      visit("vocabulary", layer.vocabulary, Presence::kOptional);
      visit("deviation", layer.deviation, Presence::kWritten);
      break;
    case LayerKind::kPositionEmbedding:
      visit("context", layer.context, Presence::kOptional);
      visit("deviation", layer.deviation, Presence::kWritten);
      break;
    case LayerKind::kTypeEmbedding:
      visit("types", layer.vocabulary, Presence::kWritten);
      visit("separator", layer.separator, Presence::kOptional);
      visit("deviation", layer.deviation, Presence::kWritten);
      break;
    case LayerKind::kClassToken:
      visit("deviation", layer.deviation, Presence::kWritten);
      break;
    case LayerKind::kLayerNorm:
      visit("epsilon", layer.epsilon, Presence::kOptional);
      visit("bias", layer.bias, Presence::kWritten);
      break;
    case LayerKind::kRmsNorm:
      visit("epsilon", layer.epsilon, Presence::kOptional);
      break;
    case LayerKind::kGelu:
      visit("gelu", layer.gelu, Presence::kWritten);
      break;
    case LayerKind::kAttention:
      visit("heads", layer.heads, Presence::kRequired);
      visit("kv_heads", layer.kv_heads, Presence::kOptional);
      visit("rope_theta", layer.rope_theta, Presence::kOptional);
      visit("causal", layer.causal, Presence::kOptional);
      visit("pad", layer.pad, Presence::kOptional);
      visit("window", layer.window, Presence::kOptional);
      visit("dropout", layer.dropout, Presence::kOptional);
      break;
    case LayerKind::kHeadNorm:
      visit("heads", layer.heads, Presence::kRequired);
      visit("kv_heads", layer.kv_heads, Presence::kOptional);
      visit("epsilon", layer.epsilon, Presence::kOptional);
      break;
    case LayerKind::kDropout:
      visit("rate", layer.dropout, Presence::kRequired);
      break;
    case LayerKind::kMaxPool:
      visit("kernel", layer.kernel, Presence::kRequired);
      visit("stride", layer.stride, Presence::kOptional);
      visit("padding", layer.padding, Presence::kWritten);
      break;
    case LayerKind::kResize:
      visit("out", layer.out_features, Presence::kRequired);
      break;
    case LayerKind::kMaxout:
      visit("group", layer.group, Presence::kRequired);
      break;
    case LayerKind::kResidual:
      visit("body", layer.body, Presence::kRequired);
      visit("shortcut", layer.shortcut, Presence::kOptional);
      break;
    case LayerKind::kBatchNorm:
    case LayerKind::kReLU:
    case LayerKind::kGlobalAvgPool:
    case LayerKind::kFlatten:
    case LayerKind::kSwiglu:
    case LayerKind::kSequence:
    case LayerKind::kFirst:
    case LayerKind::kTanh:
    case LayerKind::kSum:
    case LayerKind::kPart:
    case LayerKind::kToSlices:
    case LayerKind::kToWhole:
    case LayerKind::kProject:
    case LayerKind::kExpand:
    case LayerKind::kAnchor:
      break;
  }
}

// Returns the FLOPs of a sample's forward pass in convolutions, linear layers and attentions; a
// multiply-add counts as two. An attention counts each query's products with the keys and values
// that it sees, padding included. A backward pass is taken to be twice that. Elementwise layers and
// lookups count nothing, as is usual.
double ForwardFlops(const BlockSpec& block);
// Returns the part of ForwardFlops in attentions.
double AttentionFlops(const BlockSpec& block);

// Returns the number of layers, those inside other layers included.
int64_t CountLayers(const BlockSpec& block);

// Returns whether a split backward pass leaves the gradient of this layer's weight, a product of x
// and dy, to its second part. That holds for convolutions, linear layers and trained bases, unless
// they are frozen.
bool HasWaitingWeight(const LayerSpec& layer);

// Returns the FLOPs of these gradients for one sample: as many as the forward passes of such
// layers.
double WeightFlops(const BlockSpec& block);
// Returns the FLOPs that backward passes save as weights of convolutions and linear layers are
// frozen.
double FrozenWeightFlops(const BlockSpec& block);

}  // namespace thinwire
