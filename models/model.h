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
  kResidual,       // y = body(x) + shortcut(x); an empty shortcut is the identity
};

// Rows of a fused weight or bias that stand in files as a tensor of their own.
struct FilePart {
  std::string name;  // of a layer: that of its parameters' prefix
  int64_t rows = 0;
};

// What one parameter or buffer of a layer is called and how it starts.
struct ParameterSpec {
  // Uniform in +-1/sqrt(fan_in), or in +-sqrt(6 / (fan_in + fan_out)) (Glorot & Bengio, 2010).
  enum class Init { kUniformFanIn, kXavierUniform, kZeros, kOnes };
  std::string name;  // PyTorch's: "layer1.0.conv1.weight"
  Shape shape;       // PyTorch's layout: convolutions OIHW, linear [out, in]
  Init init = Init::kZeros;
  int64_t fan_in = 0;
  bool trainable = true;  // false: running statistics
  int64_t fan_out = 0;
  // The parameter that this one is a copy of, elsewhere in the model: both start equal and take
  // the sum of both gradients, and files have the other one only. Empty: none.
  std::string tied_to = {};
  // How it stands in files: [in, out], as GPT-2's; and as these tensors below one another, if any.
  bool transposed = false;
  std::vector<FilePart> parts = {};
};

struct LayerSpec {
  LayerKind kind = LayerKind::kReLU;
  std::string name;  // full dotted prefix of its parameters: "layer1.0.conv1"; empty without any
  // Channels for images; kConv2d, kLinear and the norms (where both are the same) only. When a
  // model is built, in_features 0 is taken from the shape.
  int64_t in_features = 0, out_features = 0;
  int64_t kernel = 0, stride = 1, padding = 0;  // pixels
  bool bias = false;
  ParameterSpec::Init init = ParameterSpec::Init::kUniformFanIn;  // kConv2d, kLinear: the weight's
  int64_t group = 0;                                              // kMaxout: features
  std::vector<LayerSpec> body, shortcut;                          // kResidual

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
  Shape input;  // batch extent 1
  int64_t classes = 0;
};

// Parameters and buffers in model order, as PyTorch's state_dict lists them (weight, bias,
// running_mean, running_var; num_batches_tracked is not kept here).
std::vector<ParameterSpec> Parameters(const LayerSpec& layer);
std::vector<ParameterSpec> Parameters(const BlockSpec& block);
int64_t TrainableParameters(const Model& model);  // elements

// Names as experiment files spell them: "conv", "global_avg_pool". The inverse gives
// InvalidArgument with the known ones.
const char* Name(LayerKind kind);
absl::Status FromName(const std::string& name, LayerKind* to);
std::vector<LayerKind> AllLayerKinds();

// Such a layer has a name of its own.
bool HasParameters(LayerKind kind);

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
      break;
    case LayerKind::kMaxPool:
      visit("kernel", layer.kernel, Presence::kRequired);
      visit("stride", layer.stride, Presence::kOptional);
      visit("padding", layer.padding, Presence::kWritten);
      break;
    case LayerKind::kMaxout:
      visit("group", layer.group, Presence::kRequired);
      break;
    case LayerKind::kResidual:
      visit("body", layer.body, Presence::kRequired);
      visit("shortcut", layer.shortcut, Presence::kOptional);
      break;
    case LayerKind::kBatchNorm:
    case LayerKind::kLayerNorm:
    case LayerKind::kReLU:
    case LayerKind::kGlobalAvgPool:
    case LayerKind::kFlatten:
      break;
  }
}

// FLOPs of the convolutions and linear layers, a multiply-add counted as two, in the forward pass
// of one sample. Backward is taken as twice that. Elementwise layers count nothing, as is usual.
double ForwardFlops(const BlockSpec& block);

}  // namespace thinwire
