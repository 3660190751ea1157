// A model as data: a list of named blocks of layers with shapes, parameters and FLOPs. Knows
// nothing of devices; nn/ builds what stands here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/parameters.h"
#include "tensor/shape.h"

namespace thinwire {

enum class LayerKind {
  kConv2d,     // square kernel, stride, padding, optional bias; channels-last
  kBatchNorm,  // over the last axis; eps 1e-5, momentum 0.1
  kReLU,
  kMaxPool,        // square kernel, stride, padding
  kGlobalAvgPool,  // [batch, h, w, c] -> [batch, c]
  kFlatten,        // [batch, h, w, c] -> [batch, c h w], in PyTorch's (NCHW) order
  kLinear,         // y = x W^T + b over the last axis, of any rank from 2
  kLayerNorm,      // over the last axis of each row; eps 1e-5
  kMaxout,         // the greatest of each `group` neighbours of the last axis
  kResize,         // the first features of the last axis, or zeros behind them: `out_features`
  kResidual,       // y = body(x) + shortcut(x); an empty shortcut is the identity

  // Of sequences. Only the first layer of a model takes token ids.
  kEmbedding,          // [batch, positions] ids -> [batch, positions, features], a row for each id
  kPositionEmbedding,  // adds a row of its own to each position
  kRmsNorm,            // over the last axis, without mean and bias (Zhang & Sennrich, 2019)
  kGelu,               // Hendrycks & Gimpel, 2016
  kSwiglu,             // [..., 2 f] -> [..., f]: silu(first half) * second half (Shazeer, 2020)
  kAttention,  // causal, [batch, positions, (heads + 2 kv_heads) head_size] -> heads of them
  kDropout,    // in training only

  // Of bottlenecks (models/bottleneck.h); nobody writes them into a model. W has orthonormal rows.
  kProject,  // y = x W^T   W: [out, in]
  kExpand,   // y = x W     W: [in, out], the one of the kProject layer named by `shares`
  kAnchor,   // adds to each position a row that belongs to its token id, or takes it off
};

// x Phi(x) itself, or its approximation by a hyperbolic tangent, which GPT-2 uses.
enum class GeluForm { kTanh, kExact };

// Rows of a fused weight or bias that stand in files as a tensor of their own.
struct FilePart {
  std::string name;  // of the tensor; in a LayerSpec without ".weight" or ".bias"
  int64_t rows = 0;
};

// What one parameter or buffer of a layer is called and how it starts.
struct ParameterSpec {
  // Uniform in +-1/sqrt(fan_in), or in +-sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio, 2010), or
  // normal with mean 0 and `deviation`, or that with its rows made orthonormal one after the other.
  enum class Init { kUniformFanIn, kXavierUniform, kZeros, kOnes, kNormal, kOrthonormal };
  std::string name;  // PyTorch's: "layer1.0.conv1.weight"
  Shape shape;       // PyTorch's layout: convolutions OIHW, linear [out, in]
  Init init = Init::kZeros;
  int64_t fan_in = 0;
  bool trainable = true;  // false: running statistics, and what stays as it starts
  int64_t fan_out = 0;
  double deviation = 0;  // kNormal
  // The parameter that this one is a copy of, elsewhere in the model: both start equal and take
  // the sum of both gradients, and files have the other one only. Empty: none.
  std::string tied_to = {};
  // How it stands in files: [in, out], as GPT-2's; and as these tensors below one another, if any.
  bool transposed = false;
  std::vector<FilePart> parts = {};
  // The weight of a convolution or linear layer that is not at an end of the model.
  bool hidden = false;
  // Its rows are orthonormal and stay so: it is trained on the Stiefel manifold, with the
  // optimizer's rate times `rate`.
  bool orthonormal = false;
  double rate = 1;
  // The parameter of the same segment, [k, features] with orthonormal rows, in whose span this one
  // stays: the columns of a linear layer's weight, the rows of anything else. Empty: none.
  std::string within = {};
};

struct LayerSpec {
  LayerKind kind = LayerKind::kReLU;
  std::string name;  // full dotted prefix of its parameters: "layer1.0.conv1"; empty without any
  // Channels for images; kConv2d, kLinear and the norms (where both are the same) only. When a
  // model is built, in_features 0 is taken from the shape.
  int64_t in_features = 0, out_features = 0;
  int64_t kernel = 0, stride = 1, padding = 0;                    // pixels
  bool bias = false;                                              // kConv2d, kLinear, kLayerNorm
  ParameterSpec::Init init = ParameterSpec::Init::kUniformFanIn;  // kConv2d, kLinear: the weight's
  int64_t group = 0;                                              // kMaxout: features
  std::vector<LayerSpec> body, shortcut;                          // kResidual

  // kEmbedding: rows; 0 is the model's classes. kPositionEmbedding: rows, at least as many as there
  // are positions; 0 is as many.
  int64_t vocabulary = 0, context = 0;
  // Of the normal distribution with which a weight of kLinear, kEmbedding or kPositionEmbedding
  // starts; a bias starts at zero then. 0, kLinear only: as `init` says.
  double deviation = 0;
  // Of the layers with a matrix or a table the model's first or last: filled in when it is built.
  bool is_end = false;
  // kProject: the layer whose weight this one copies; kExpand: likewise. kAnchor: the one of this
  // segment whose table it uses; without, the one whose fixed table it copies. Empty: none.
  std::string shares, copies;
  bool trained = false;  // kProject, kExpand, kAnchor: else fixed as it starts
  double rate = 1;       // kProject, kExpand: ParameterSpec's
  // kAnchor, trained: [vocabulary, rank] times a fixed [rank, features] with orthonormal rows; else
  // the table is [vocabulary, features].
  int64_t rank = 0;
  bool subtracts = false;  // kAnchor
  // kAnchor, fixed and subtracting from a code: the kProject layer before it.
  std::string through;
  std::string within;       // kLinear, kEmbedding, kPositionEmbedding: the layer of ParameterSpec's
  std::string tied_to;      // kLinear: the layer, an embedding, whose weight this one copies
  bool transposed = false;  // kLinear: ParameterSpec's
  std::vector<FilePart> parts;  // kLinear: of its output features, in this order
  double epsilon = 1e-5;        // kLayerNorm, kRmsNorm: added to the variance or the mean square
  GeluForm gelu = GeluForm::kTanh;
  // kAttention: heads of queries, and of keys and values (0: as many), which neighbouring queries
  // share (Ainslie et al., 2023). Rotary embedding's base (Su et al., 2021); 0: none.
  int64_t heads = 0, kv_heads = 0;
  double rope_theta = 0;
  double dropout = 0;  // kDropout, kAttention (of its weights): in [0, 1)

  // Shapes of one sample with the batch extent 1, filled in when the model is built.
  Shape in, out;
};

// The unit that a cut can stand behind.
struct BlockSpec {
  std::string name;  // "stem", "layer1.0", "head"
  std::vector<LayerSpec> layers;
  Shape in, out;  // batch extent 1
};

struct Model {
  std::string name;
  std::vector<BlockSpec> blocks;
  Shape input;  // batch extent 1; with `tokens` [1, positions] ids
  int64_t classes = 0;
  bool tokens = false;    // the input is token ids, and there are logits for each position
  int64_t positions = 1;  // labels of one sample
};

// Parameters and buffers in model order, as PyTorch's state_dict lists them (weight, bias,
// running_mean, running_var; num_batches_tracked is not kept here).
std::vector<ParameterSpec> Parameters(const LayerSpec& layer);
std::vector<ParameterSpec> Parameters(const BlockSpec& block);
int64_t TrainableParameters(const Model& model);  // elements; copies of others are not counted

// Names as experiment files spell them: "conv", "global_avg_pool". The inverse gives
// InvalidArgument with the known ones.
const char* Name(LayerKind kind);
absl::Status FromName(const std::string& name, LayerKind* to);
std::vector<LayerKind> AllLayerKinds();

// Names as experiment files spell them: "tanh". The inverse gives InvalidArgument with both.
const char* Name(GeluForm form);
absl::Status FromName(const std::string& name, GeluForm* to);

// Such a layer has a name of its own: for its parameters or its random numbers.
bool HasName(LayerKind kind);

// Whether training draws random numbers in one of these layers.
bool IsRandom(const std::vector<LayerSpec>& layers);

// Whether one of these layers wants the samples' token ids, wherever in the model it is.
bool ReadsIds(const std::vector<LayerSpec>& layers);

// The size of a head that kAttention's input gives: of queries, keys and values alike.
int64_t HeadSize(const LayerSpec& attention);

// A layer of that kind with the defaults of what an experiment leaves out.
LayerSpec DefaultLayer(LayerKind kind);

// Calls visit(name, field, presence) for each parameter of the kind (base/parameters.h). The stride
// of a max-pool is its kernel unless it is given.
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
      visit("dropout", layer.dropout, Presence::kOptional);
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
    case LayerKind::kProject:
    case LayerKind::kExpand:
    case LayerKind::kAnchor:
      break;
  }
}

// FLOPs of the convolutions, linear layers and attentions, a multiply-add counted as two, in the
// forward pass of one sample. An attention's are those of a query's products with the keys and
// values up to its own position. Backward is taken as twice that. Elementwise layers and lookups
// count nothing, as is usual.
double ForwardFlops(const BlockSpec& block);
// Of these, the attentions'.
double AttentionFlops(const BlockSpec& block);

// Layers, with those inside of others.
int64_t CountLayers(const BlockSpec& block);

// Whether a backward pass that is split leaves the gradient of this layer's weight to its second
// part: that of a convolution, of a linear layer or of a trained basis, a product of x and dy.
bool HasWaitingWeight(const LayerSpec& layer);

// FLOPs of these gradients for one sample: as many as such layers' forward passes take.
double WeightFlops(const BlockSpec& block);

}  // namespace thinwire
