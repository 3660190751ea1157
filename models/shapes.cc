#include "models/shapes.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr int64_t kMaxPixels = 1 << 12, kMaxFeatures = 1 << 24, kMaxKernel = 64;

absl::Status Misfit(const LayerSpec& layer, const std::string& problem) {
  return absl::InvalidArgumentError(absl::StrCat(layer.name.empty() ? "" : layer.name + ": ",
                                                 Name(layer.kind), " on ", layer.in.ToString(),
                                                 ": ", problem));
}

absl::Status CheckRange(const LayerSpec& layer, const char* field, int64_t value, int64_t low,
                        int64_t high) {
  if (low <= value && value <= high) return absl::OkStatus();
  return Misfit(layer, absl::StrCat(field, " is ", value, ", want ", low, " to ", high));
}

absl::Status CheckRank(const LayerSpec& layer, int rank, const char* want) {
  if (layer.in.rank() == rank) return absl::OkStatus();
  return Misfit(layer, absl::StrCat("want an input of shape ", want));
}

// The last axis must be what the layer was written for, unless it leaves that open.
absl::Status FillInFeatures(LayerSpec* layer) {
  const int64_t last = layer->in[layer->in.rank() - 1];
  if (layer->in_features == 0) layer->in_features = last;
  if (layer->in_features == last) return absl::OkStatus();
  return Misfit(*layer, absl::StrCat("the last axis has ", last, " features, in_features is ",
                                     layer->in_features));
}

// Shape of a convolution or pooling that gives `channels`.
absl::StatusOr<Shape> Windowed(const LayerSpec& layer, int64_t channels) {
  RETURN_IF_ERROR(CheckRange(layer, "kernel", layer.kernel, 1, kMaxKernel));
  RETURN_IF_ERROR(CheckRange(layer, "stride", layer.stride, 1, kMaxKernel));
  Shape out = {1};
  for (int axis = 1; axis <= 2; ++axis) {
    const int64_t room = layer.in[axis] + 2 * layer.padding - layer.kernel;
    if (room < 0) {
      return Misfit(layer, absl::StrCat("kernel ", layer.kernel, " with padding ", layer.padding,
                                        " does not fit"));
    }
    out.Append(room / layer.stride + 1);
  }
  out.Append(channels);
  return out;
}

absl::StatusOr<Shape> Conv2dShape(LayerSpec* layer) {
  RETURN_IF_ERROR(CheckRank(*layer, 4, "[1, height, width, channels]"));
  RETURN_IF_ERROR(FillInFeatures(layer));
  RETURN_IF_ERROR(CheckRange(*layer, "out_features", layer->out_features, 1, kMaxFeatures));
  RETURN_IF_ERROR(CheckRange(*layer, "padding", layer->padding, 0, kMaxKernel));
  return Windowed(*layer, layer->out_features);
}

absl::StatusOr<Shape> MaxPoolShape(LayerSpec* layer) {
  RETURN_IF_ERROR(CheckRank(*layer, 4, "[1, height, width, channels]"));
  // A wider pad would make windows that hold no pixel at all.
  RETURN_IF_ERROR(CheckRange(*layer, "padding", layer->padding, 0, layer->kernel / 2));
  return Windowed(*layer, layer->in[3]);
}

// The input's, with another last axis.
Shape WithLast(const Shape& in, int64_t features) {
  Shape out;
  for (int axis = 0; axis < in.rank() - 1; ++axis) out.Append(in[axis]);
  out.Append(features);
  return out;
}

absl::StatusOr<Shape> LinearShape(LayerSpec* layer) {
  RETURN_IF_ERROR(FillInFeatures(layer));
  RETURN_IF_ERROR(CheckRange(*layer, "out_features", layer->out_features, 1, kMaxFeatures));
  return WithLast(layer->in, layer->out_features);
}

absl::StatusOr<Shape> MaxoutShape(const LayerSpec& layer) {
  const int64_t features = layer.in[layer.in.rank() - 1];
  RETURN_IF_ERROR(CheckRange(layer, "group", layer.group, 1, features));
  if (features % layer.group == 0) return WithLast(layer.in, features / layer.group);
  return Misfit(layer, absl::StrCat("group is ", layer.group, ", which does not divide ", features,
                                    " features"));
}

absl::StatusOr<Shape> NormShape(LayerSpec* layer) {
  RETURN_IF_ERROR(FillInFeatures(layer));
  if (layer->out_features == 0) layer->out_features = layer->in_features;
  RETURN_IF_ERROR(CheckRange(*layer, "out_features", layer->out_features, layer->in_features,
                             layer->in_features));
  return layer->in;
}

absl::StatusOr<Shape> FillLayers(std::vector<LayerSpec>* layers, const Shape& in);

absl::StatusOr<Shape> ResidualShape(LayerSpec* layer) {
  ASSIGN_OR_RETURN(const Shape body, FillLayers(&layer->body, layer->in));
  ASSIGN_OR_RETURN(const Shape shortcut, FillLayers(&layer->shortcut, layer->in));
  if (body == shortcut) return body;
  return Misfit(*layer, absl::StrCat("the body gives ", body.ToString(), ", the shortcut ",
                                     shortcut.ToString()));
}

absl::StatusOr<Shape> LayerShape(LayerSpec* layer) {
  switch (layer->kind) {
    case LayerKind::kConv2d:
      return Conv2dShape(layer);
    case LayerKind::kBatchNorm:
    case LayerKind::kLayerNorm:
      return NormShape(layer);
    case LayerKind::kReLU:
      return layer->in;
    case LayerKind::kMaxPool:
      return MaxPoolShape(layer);
    case LayerKind::kGlobalAvgPool:
      RETURN_IF_ERROR(CheckRank(*layer, 4, "[1, height, width, channels]"));
      return Shape{1, layer->in[3]};
    case LayerKind::kFlatten:
      RETURN_IF_ERROR(CheckRank(*layer, 4, "[1, height, width, channels]"));
      RETURN_IF_ERROR(CheckRange(*layer, "features", layer->in.elements(), 1, kMaxFeatures));
      return Shape{1, layer->in.elements()};
    case LayerKind::kLinear:
      return LinearShape(layer);
    case LayerKind::kMaxout:
      return MaxoutShape(*layer);
    case LayerKind::kResidual:
      return ResidualShape(layer);
  }
  return layer->in;
}

absl::StatusOr<Shape> FillLayers(std::vector<LayerSpec>* layers, const Shape& in) {
  Shape shape = in;
  for (LayerSpec& layer : *layers) {
    layer.in = shape;
    ASSIGN_OR_RETURN(layer.out, LayerShape(&layer));
    for (int axis = 1; axis < layer.out.rank() - 1; ++axis) {
      const char* const what = layer.out.rank() == 4 ? "image side" : "positions";
      RETURN_IF_ERROR(CheckRange(layer, what, layer.out[axis], 1, kMaxPixels));
    }
    shape = layer.out;
  }
  return shape;
}

absl::Status CheckInput(const Shape& input) {
  bool good = input.rank() >= 2 && input.rank() <= 4 && input[0] == 1;
  for (int axis = 1; axis < input.rank(); ++axis) {
    const int64_t limit = axis == input.rank() - 1 ? kMaxFeatures : kMaxPixels;
    good = good && 1 <= input[axis] && input[axis] <= limit;
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model input ", input.ToString(),
      ": want [1, height, width, channels], [1, positions, features] or [1, features], sides and "
      "positions up to ",
      kMaxPixels, ", features up to ", kMaxFeatures));
}

}  // namespace

absl::Status FillShapes(Model* model) {
  RETURN_IF_ERROR(CheckInput(model->input));
  Shape shape = model->input;
  for (BlockSpec& block : model->blocks) {
    block.in = shape;
    absl::StatusOr<Shape> out = FillLayers(&block.layers, shape);
    if (!out.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("block ", block.name, ": ", out.status().message()));
    }
    block.out = shape = *out;
  }
  return absl::OkStatus();
}

}  // namespace thinwire
