#include "models/cost.h"

namespace thinwire {
namespace {

bool KeepsInput(const LayerSpec& layer) {
  const auto first_keeps = [](const std::vector<LayerSpec>& layers) {
    return !layers.empty() && KeepsInput(layers.front());
  };
  switch (layer.kind) {
    case LayerKind::kConv2d:
    case LayerKind::kBatchNorm:
    case LayerKind::kMaxPool:
    case LayerKind::kLinear:
    case LayerKind::kLayerNorm:
    case LayerKind::kMaxout:
      return true;
    case LayerKind::kResidual:
      return first_keeps(layer.body) || first_keeps(layer.shortcut);
    case LayerKind::kReLU:
    case LayerKind::kGlobalAvgPool:
    case LayerKind::kFlatten:
      break;
  }
  return false;
}

// Elements that these layers keep. *input_counted: whether their input is counted already; then
// whether their output is.
int64_t KeptElements(const std::vector<LayerSpec>& layers, bool* input_counted) {
  int64_t elements = 0;
  for (const LayerSpec& layer : layers) {
    if (KeepsInput(layer) && !*input_counted) elements += layer.in.elements();
    for (const auto* branch : {&layer.body, &layer.shortcut}) {
      bool branch_input_counted = true;
      elements += KeptElements(*branch, &branch_input_counted);
    }
    *input_counted = layer.kind == LayerKind::kReLU;
    if (*input_counted) elements += layer.out.elements();
  }
  return elements;
}

SegmentCost CostOf(const Model& model, const BlockRange& range) {
  SegmentCost cost;
  bool input_counted = false;
  for (int i = range.first; i < range.last; ++i) {
    const BlockSpec& block = model.blocks[i];
    for (const ParameterSpec& parameter : Parameters(block)) {
      if (parameter.trainable) cost.parameters += parameter.shape.elements();
    }
    cost.forward_flops += ForwardFlops(block);
    cost.kept_elements += KeptElements(block.layers, &input_counted);
  }
  const bool is_last = range.last == static_cast<int>(model.blocks.size());
  cost.boundary_elements = is_last ? 0 : model.blocks[range.last - 1].out.elements();
  return cost;
}

}  // namespace

std::vector<SegmentCost> SegmentCosts(const Model& model, const std::vector<Cut>& cuts) {
  std::vector<SegmentCost> costs;
  for (int segment = 0; segment <= static_cast<int>(cuts.size()); ++segment) {
    costs.push_back(CostOf(model, SegmentBlocks(model, cuts, segment)));
  }
  return costs;
}

int64_t TrainingBytes(const SegmentCost& cost, const TrainingMemory& memory) {
  constexpr int64_t kFloatBytes = 4;
  const int64_t copies = 2 + memory.optimizer_buffers;  // value, gradient
  return kFloatBytes * copies * cost.parameters +
         memory.element_bytes * memory.samples_in_flight * cost.kept_elements;
}

}  // namespace thinwire
