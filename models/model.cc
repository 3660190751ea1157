#include "models/model.h"

#include "base/enum_names.h"

namespace thinwire {
namespace {

using Init = ParameterSpec::Init;

constexpr Named<LayerKind> kLayerNames[] = {{LayerKind::kConv2d, "conv"},
                                            {LayerKind::kBatchNorm, "batch_norm"},
                                            {LayerKind::kLayerNorm, "layer_norm"},
                                            {LayerKind::kReLU, "relu"},
                                            {LayerKind::kMaxPool, "max_pool"},
                                            {LayerKind::kMaxout, "maxout"},
                                            {LayerKind::kGlobalAvgPool, "global_avg_pool"},
                                            {LayerKind::kFlatten, "flatten"},
                                            {LayerKind::kLinear, "linear"},
                                            {LayerKind::kResidual, "residual"}};

// The weight, of `shape`, and the bias of a convolution or linear layer; the bias starts as
// PyTorch's.
std::vector<ParameterSpec> WeightAndBias(const LayerSpec& layer, Shape shape) {
  const int64_t fan_in = shape.elements() / shape[0], fan_out = shape.elements() / shape[1];
  std::vector<ParameterSpec> parameters = {
      {layer.name + ".weight", shape, layer.init, fan_in, /*trainable=*/true, fan_out}};
  if (layer.bias) {
    parameters.push_back(
        {layer.name + ".bias", Shape{layer.out_features}, Init::kUniformFanIn, fan_in});
  }
  return parameters;
}

std::vector<ParameterSpec> LayerNormParameters(const LayerSpec& layer) {
  const Shape features = {layer.in_features};
  return {{layer.name + ".weight", features, Init::kOnes},
          {layer.name + ".bias", features, Init::kZeros}};
}

std::vector<ParameterSpec> BatchNormParameters(const LayerSpec& layer) {
  const Shape channels = {layer.in_features};
  return {{layer.name + ".weight", channels, Init::kOnes},
          {layer.name + ".bias", channels, Init::kZeros},
          {layer.name + ".running_mean", channels, Init::kZeros, 0, /*trainable=*/false},
          {layer.name + ".running_var", channels, Init::kOnes, 0, /*trainable=*/false}};
}

std::vector<ParameterSpec> ParametersOfAll(const std::vector<LayerSpec>& layers) {
  std::vector<ParameterSpec> all;
  for (const LayerSpec& layer : layers) {
    for (ParameterSpec& parameter : Parameters(layer)) all.push_back(std::move(parameter));
  }
  return all;
}

double FlopsOfAll(const std::vector<LayerSpec>& layers) {
  double flops = 0;
  for (const LayerSpec& layer : layers) {
    if (layer.kind == LayerKind::kConv2d || layer.kind == LayerKind::kLinear) {
      const double taps = layer.kind == LayerKind::kConv2d ? layer.kernel * layer.kernel : 1;
      flops += 2.0 * layer.out.elements() * layer.in_features * taps;
    }
    flops += FlopsOfAll(layer.body) + FlopsOfAll(layer.shortcut);
  }
  return flops;
}

}  // namespace

const char* Name(LayerKind kind) { return NameIn(kLayerNames, kind); }

absl::Status FromName(const std::string& name, LayerKind* to) {
  return FindName("layer", name, kLayerNames, to);
}

std::vector<LayerKind> AllLayerKinds() { return ValuesIn(kLayerNames); }

bool HasParameters(LayerKind kind) {
  return kind == LayerKind::kConv2d || kind == LayerKind::kLinear ||
         kind == LayerKind::kBatchNorm || kind == LayerKind::kLayerNorm;
}

LayerSpec DefaultLayer(LayerKind kind) {
  LayerSpec layer;
  layer.kind = kind;
  layer.bias = kind == LayerKind::kConv2d || kind == LayerKind::kLinear;
  if (kind == LayerKind::kMaxPool) layer.stride = 0;
  return layer;
}

std::vector<ParameterSpec> Parameters(const LayerSpec& layer) {
  switch (layer.kind) {
    case LayerKind::kConv2d:
      return WeightAndBias(layer,
                           {layer.out_features, layer.in_features, layer.kernel, layer.kernel});
    case LayerKind::kLinear:
      return WeightAndBias(layer, {layer.out_features, layer.in_features});
    case LayerKind::kBatchNorm:
      return BatchNormParameters(layer);
    case LayerKind::kLayerNorm:
      return LayerNormParameters(layer);
    case LayerKind::kResidual: {
      std::vector<ParameterSpec> all = ParametersOfAll(layer.body);
      for (ParameterSpec& p : ParametersOfAll(layer.shortcut)) all.push_back(std::move(p));
      return all;
    }
    case LayerKind::kReLU:
    case LayerKind::kMaxPool:
    case LayerKind::kGlobalAvgPool:
    case LayerKind::kFlatten:
    case LayerKind::kMaxout:
      break;
  }
  return {};
}

std::vector<ParameterSpec> Parameters(const BlockSpec& block) {
  return ParametersOfAll(block.layers);
}

int64_t TrainableParameters(const Model& model) {
  int64_t elements = 0;
  for (const BlockSpec& block : model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      if (parameter.trainable) elements += parameter.shape.elements();
    }
  }
  return elements;
}

double ForwardFlops(const BlockSpec& block) { return FlopsOfAll(block.layers); }

}  // namespace thinwire
