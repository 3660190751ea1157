#include "models/base_weights.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr Named<WeightFormat> kFormatNames[] = {{WeightFormat::kFP32, "fp32"},
                                                {WeightFormat::kBF16, "bf16"},
                                                {WeightFormat::kInt8, "int8"},
                                                {WeightFormat::kNF4, "nf4"}};

bool IsOfBase(const LayerSpec& layer) {
  return layer.kind == LayerKind::kLinear && layer.frozen && !layer.is_end && layer.tied_to.empty();
}

absl::Status CheckLayer(const LayerSpec& layer, WeightFormat format) {
  if (!layer.slice.whole.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", layer.name, " is part of ", layer.slice.whole,
                     ", want whole layers: tensor.parts is 1 with weights of ", Name(format)));
  }
  const bool fits = format != WeightFormat::kNF4 || layer.in_features % kNF4Block == 0;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("layer ", layer.name, " has ", layer.in_features,
                                                 " input features, want a multiple of ", kNF4Block,
                                                 " with weights of ", Name(format)));
}

}  // namespace

NameTable<WeightFormat> TableOf(WeightFormat) { return {"weights", kFormatNames}; }

absl::StatusOr<Model> WithBase(Model model, WeightFormat format) {
  if (format == WeightFormat::kFP32) return model;
  absl::Status status;
  int layers = 0;
  for (BlockSpec& block : model.blocks) {
    ForEachLayer(block.layers, [&](LayerSpec& layer) {
      if (!IsOfBase(layer)) return;
      status.Update(CheckLayer(layer, format));
      layer.format = format;
      ++layers;
    });
  }
  RETURN_IF_ERROR(status);
  if (layers > 0) return model;
  return absl::InvalidArgumentError(absl::StrCat(
      "weights: ", Name(format), ", but model ", model.name,
      " has no frozen linear layer between its first and its last layer: want lora, or "
      "freeze with such a layer"));
}

int64_t ValueBytes(const ParameterSpec& parameter) {
  const Shape& shape = parameter.shape;
  if (shape.rank() == 0) return sizeof(float);
  return FormatBytes(parameter.format, shape[0], shape.elements() / shape[0]);
}

}  // namespace thinwire
