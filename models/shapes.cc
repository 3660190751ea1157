#include "models/shapes.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr int64_t kMaxPixels = 1 << 12, kMaxPositions = 1 << 17, kMaxFeatures = 1 << 24;
constexpr int64_t kMaxKernel = 64;

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

// Checks that the last axis is what the layer declares; fills it in if it is 0.
absl::Status FillInFeatures(LayerSpec* layer) {
  const int64_t last = layer->in[layer->in.rank() - 1];
  if (layer->in_features == 0) layer->in_features = last;
  if (layer->in_features == last) return absl::OkStatus();
  return Misfit(*layer, absl::StrCat("the last axis has ", last, " features, in_features is ",
                                     layer->in_features));
}

// Returns the output shape of a convolution or pooling with `channels`.
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
  // A wider padding would make windows without any pixel.
  RETURN_IF_ERROR(CheckRange(*layer, "padding", layer->padding, 0, layer->kernel / 2));
  return Windowed(*layer, layer->in[3]);
}

// Returns the input's shape with another last axis.
Shape WithLast(const Shape& in, int64_t features) { return in.With(in.rank() - 1, features); }

absl::StatusOr<Shape> LinearShape(LayerSpec* layer) {
  RETURN_IF_ERROR(FillInFeatures(layer));
  RETURN_IF_ERROR(CheckRange(*layer, "out_features", layer->out_features, 1, kMaxFeatures));
  return WithLast(layer->in, layer->out_features);
}

absl::StatusOr<Shape> ResizeShape(const LayerSpec& layer) {
  RETURN_IF_ERROR(CheckRange(layer, "out_features", layer.out_features, 1, kMaxFeatures));
  return WithLast(layer.in, layer.out_features);
}

// Returns the shape after a basis. One side has the width of the code, the other the features,
// which cannot be fewer.
absl::StatusOr<Shape> BasisShape(LayerSpec* layer) {
  RETURN_IF_ERROR(FillInFeatures(layer));
  const bool projects = layer->kind == LayerKind::kProject;
  const int64_t low = projects ? 1 : layer->in_features;
  const int64_t high = projects ? layer->in_features : kMaxFeatures;
  RETURN_IF_ERROR(CheckRange(*layer, "out_features", layer->out_features, low, high));
  return WithLast(layer->in, layer->out_features);
}

absl::StatusOr<Shape> AnchorShape(LayerSpec* layer) {
  RETURN_IF_ERROR(CheckRank(*layer, 3, "[1, positions, features]"));
  RETURN_IF_ERROR(FillInFeatures(layer));
  layer->out_features = layer->in_features;
  RETURN_IF_ERROR(CheckRange(*layer, "vocabulary", layer->vocabulary, 1, kMaxFeatures));
  if (layer->trained) {
    RETURN_IF_ERROR(CheckRange(*layer, "rank", layer->rank, 1, layer->in_features));
  }
  return layer->in;
}

absl::StatusOr<Shape> MaxoutShape(const LayerSpec& layer) {
  const int64_t features = layer.in[layer.in.rank() - 1];
  RETURN_IF_ERROR(CheckRange(layer, "group", layer.group, 1, features));
  if (features % layer.group == 0) return WithLast(layer.in, features / layer.group);
  return Misfit(layer, absl::StrCat("group is ", layer.group, ", which does not divide ", features,
                                    " features"));
}

absl::Status CheckEpsilon(const LayerSpec& layer) {
  if (layer.epsilon > 0 && layer.epsilon < 1) return absl::OkStatus();
  return Misfit(layer, absl::StrCat("epsilon is ", layer.epsilon, ", want it above 0 and under 1"));
}

absl::StatusOr<Shape> NormShape(LayerSpec* layer) {
  RETURN_IF_ERROR(FillInFeatures(layer));
  RETURN_IF_ERROR(CheckEpsilon(*layer));
  if (layer->out_features == 0) layer->out_features = layer->in_features;
  RETURN_IF_ERROR(CheckRange(*layer, "out_features", layer->out_features, layer->in_features,
                             layer->in_features));
  return layer->in;
}

absl::StatusOr<Shape> EmbeddingShape(LayerSpec* layer, bool starts_model) {
  if (!starts_model || layer->in.rank() != 2) {
    return Misfit(*layer, "want it first in a model, on token ids [1, positions]");
  }
  RETURN_IF_ERROR(CheckRange(*layer, "out_features", layer->out_features, 1, kMaxFeatures));
  RETURN_IF_ERROR(CheckRange(*layer, "vocabulary", layer->vocabulary, 1, kMaxFeatures));
  Shape out = layer->in;
  out.Append(layer->out_features);
  return out;
}

absl::StatusOr<Shape> PositionEmbeddingShape(LayerSpec* layer) {
  RETURN_IF_ERROR(CheckRank(*layer, 3, "[1, positions, features]"));
  const int64_t positions = layer->in[1];
  if (layer->context == 0) layer->context = positions;
  if (layer->context < positions) {
    return Misfit(*layer, absl::StrCat("context is ", layer->context, ", want at least the ",
                                       positions, " positions of a sample"));
  }
  RETURN_IF_ERROR(CheckRange(*layer, "context", layer->context, 1, kMaxPositions));
  layer->out_features = layer->in[2];
  return layer->in;
}

absl::StatusOr<Shape> SequenceShape(const LayerSpec& layer) {
  RETURN_IF_ERROR(CheckRank(layer, 4, "[1, height, width, channels]"));
  return Shape{1, layer.in[1] * layer.in[2], layer.in[3]};
}

absl::StatusOr<Shape> ClassTokenShape(LayerSpec* layer) {
  RETURN_IF_ERROR(CheckRank(*layer, 3, "[1, positions, features]"));
  layer->out_features = layer->in[2];
  return layer->in.With(1, layer->in[1] + 1);
}

absl::StatusOr<Shape> TypeEmbeddingShape(LayerSpec* layer) {
  RETURN_IF_ERROR(CheckRank(*layer, 3, "[1, positions, features]"));
  const int64_t least = layer->separator == kNoId ? 1 : 2;
  RETURN_IF_ERROR(CheckRange(*layer, "types", layer->vocabulary, least, kMaxFeatures));
  layer->out_features = layer->in[2];
  return layer->in;
}

absl::StatusOr<Shape> SwigluShape(const LayerSpec& layer) {
  const int64_t features = layer.in[layer.in.rank() - 1];
  if (features % 2 == 0) return WithLast(layer.in, features / 2);
  return Misfit(layer, absl::StrCat("want an even number of features, not ", features));
}

absl::Status CheckDropout(const LayerSpec& layer, const char* field) {
  if (layer.dropout >= 0 && layer.dropout < 1) return absl::OkStatus();
  return Misfit(layer, absl::StrCat(field, " is ", layer.dropout, ", want at least 0 and under 1"));
}

// Checks that the features are heads of queries, keys and values of one size.
absl::Status CheckHeads(const LayerSpec& layer) {
  RETURN_IF_ERROR(CheckRank(layer, 3, "[1, positions, features]"));
  const int64_t features = layer.in[2];
  RETURN_IF_ERROR(CheckRange(layer, "heads", layer.heads, 1, features));
  const int64_t kv_heads = layer.kv_heads == 0 ? layer.heads : layer.kv_heads;
  if (kv_heads < 0 || layer.heads % kv_heads != 0) {
    return Misfit(layer, absl::StrCat("kv_heads is ", kv_heads, ", which does not divide ",
                                      layer.heads, " heads"));
  }
  if (features % (layer.heads + 2 * kv_heads) != 0) {
    return Misfit(
        layer, absl::StrCat("want equal heads: ", features, " features are not ", layer.heads,
                            " queries, ", kv_heads, " keys and ", kv_heads, " values of one size"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> HeadNormShape(const LayerSpec& layer) {
  RETURN_IF_ERROR(CheckHeads(layer));
  RETURN_IF_ERROR(CheckEpsilon(layer));
  return layer.in;
}

absl::StatusOr<Shape> AttentionShape(const LayerSpec& layer) {
  RETURN_IF_ERROR(CheckHeads(layer));
  const int64_t head_size = HeadSize(layer);
  if (layer.rope_theta != 0 && !(layer.rope_theta > 0 && head_size % 2 == 0)) {
    return Misfit(layer, absl::StrCat("rope_theta is ", layer.rope_theta, " with heads of ",
                                      head_size, ", want it above 0 and an even size"));
  }
  RETURN_IF_ERROR(CheckDropout(layer, "dropout"));
  if (layer.causal && layer.pad != kNoId) {
    return Misfit(layer,
                  absl::StrCat("pad is ", layer.pad, " with causal true, want causal: false"));
  }
  if (!layer.causal && layer.window != 0) {
    return Misfit(
        layer, absl::StrCat("window is ", layer.window, " with causal false, want causal: true"));
  }
  return WithLast(layer.in, layer.heads * head_size);
}

absl::StatusOr<Shape> FillLayers(std::vector<LayerSpec>* layers, const Shape& in,
                                 bool starts_model = false);

absl::StatusOr<Shape> ResidualShape(LayerSpec* layer) {
  ASSIGN_OR_RETURN(const Shape body, FillLayers(&layer->body, layer->in));
  ASSIGN_OR_RETURN(const Shape shortcut, FillLayers(&layer->shortcut, layer->in));
  if (body == shortcut) return body;
  return Misfit(*layer, absl::StrCat("the body gives ", body.ToString(), ", the shortcut ",
                                     shortcut.ToString()));
}

absl::StatusOr<Shape> SumShape(LayerSpec* layer) {
  Shape sum;
  for (LayerSpec& part : layer->body) {
    part.in = layer->in;
    ASSIGN_OR_RETURN(part.out, FillLayers(&part.body, part.in));
    sum = part.out;
  }
  return sum;
}

absl::StatusOr<Shape> LayerShape(LayerSpec* layer, bool starts_model) {
  switch (layer->kind) {
    case LayerKind::kConv2d:
      return Conv2dShape(layer);
    case LayerKind::kBatchNorm:
    case LayerKind::kLayerNorm:
    case LayerKind::kRmsNorm:
      return NormShape(layer);
    case LayerKind::kReLU:
    case LayerKind::kGelu:
    case LayerKind::kTanh:
      return layer->in;
    case LayerKind::kDropout:
      RETURN_IF_ERROR(CheckDropout(*layer, "rate"));
      return layer->in;
    case LayerKind::kEmbedding:
      return EmbeddingShape(layer, starts_model);
    case LayerKind::kPositionEmbedding:
      return PositionEmbeddingShape(layer);
    case LayerKind::kTypeEmbedding:
      return TypeEmbeddingShape(layer);
    case LayerKind::kSequence:
      return SequenceShape(*layer);
    case LayerKind::kClassToken:
      return ClassTokenShape(layer);
    case LayerKind::kFirst:
      RETURN_IF_ERROR(CheckRank(*layer, 3, "[1, positions, features]"));
      return Shape{1, layer->in[2]};
    case LayerKind::kSwiglu:
      return SwigluShape(*layer);
    case LayerKind::kAttention:
      return AttentionShape(*layer);
    case LayerKind::kHeadNorm:
      return HeadNormShape(*layer);
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
    case LayerKind::kResize:
      return ResizeShape(*layer);
    case LayerKind::kProject:
    case LayerKind::kExpand:
      return BasisShape(layer);
    case LayerKind::kAnchor:
      return AnchorShape(layer);
    case LayerKind::kResidual:
      return ResidualShape(layer);
    case LayerKind::kSum:
      return SumShape(layer);
    case LayerKind::kPart:  // SumShape fills it in
    case LayerKind::kToSlices:
    case LayerKind::kToWhole:
      break;
  }
  return layer->in;
}

absl::StatusOr<Shape> FillLayers(std::vector<LayerSpec>* layers, const Shape& in,
                                 bool starts_model) {
  Shape shape = in;
  for (LayerSpec& layer : *layers) {
    layer.in = shape;
    ASSIGN_OR_RETURN(layer.out, LayerShape(&layer, starts_model));
    const bool is_image = layer.out.rank() == 4;
    for (int axis = 1; axis < layer.out.rank() - 1; ++axis) {
      RETURN_IF_ERROR(CheckRange(layer, is_image ? "image side" : "positions", layer.out[axis], 1,
                                 is_image ? kMaxPixels : kMaxPositions));
    }
    shape = layer.out;
    starts_model = false;
  }
  return shape;
}

absl::Status CheckInput(const Shape& input) {
  bool good = input.rank() >= 2 && input.rank() <= 4 && input[0] == 1;
  for (int axis = 1; axis < input.rank(); ++axis) {
    const int64_t side = input.rank() == 4 ? kMaxPixels : kMaxPositions;
    const int64_t limit = axis == input.rank() - 1 ? kMaxFeatures : side;
    good = good && 1 <= input[axis] && input[axis] <= limit;
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model input ", input.ToString(),
      ": want [1, height, width, channels], [1, positions, features], [1, features] or [1, "
      "positions], sides up to ",
      kMaxPixels, ", positions up to ", kMaxPositions, ", features up to ", kMaxFeatures));
}

// Sets what an embedding at the model's start implies.
void BeginWithTokens(Model* model) {
  model->tokens = !model->blocks.empty() && !model->blocks.front().layers.empty() &&
                  model->blocks.front().layers.front().kind == LayerKind::kEmbedding;
  if (!model->tokens) return;
  LayerSpec& embedding = model->blocks.front().layers.front();
  if (embedding.vocabulary == 0) embedding.vocabulary = model->classes;
}

// Checks a layer that reads a model's token ids: it has a position for each, and pad and separator
// are such ids.
absl::Status CheckReader(const LayerSpec& layer, const Model& model) {
  RETURN_IF_ERROR(CheckRange(layer, "positions", layer.in[1], model.input[1], model.input[1]));
  const int64_t last = model.blocks.front().layers.front().vocabulary - 1;
  if (layer.pad != kNoId) RETURN_IF_ERROR(CheckRange(layer, "pad", layer.pad, 0, last));
  if (layer.separator == kNoId) return absl::OkStatus();
  return CheckRange(layer, "separator", layer.separator, 0, last);
}

// Checks that layers which read token ids are in a model that takes them, and fit them.
absl::Status CheckIdsAreThere(const Model& model) {
  for (const BlockSpec& block : model.blocks) {
    if (!ReadsIds(block.layers)) continue;
    if (!model.tokens) {
      return absl::InvalidArgumentError(
          absl::StrCat("block ", block.name,
                       " reads token ids, want an embedding of them at the model's begin"));
    }
    absl::Status status;
    ForEachLayer(block.layers, [&](const LayerSpec& layer) {
      const bool reads =
          layer.kind == LayerKind::kAnchor || layer.pad != kNoId || layer.separator != kNoId;
      if (reads) status.Update(CheckReader(layer, model));
    });
    RETURN_IF_ERROR(Annotated(status, absl::StrCat("block ", block.name)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FillShapes(Model* model) {
  RETURN_IF_ERROR(CheckInput(model->input));
  BeginWithTokens(model);
  Shape shape = model->input;
  for (BlockSpec& block : model->blocks) {
    block.in = shape;
    const bool starts_model = &block == &model->blocks.front();
    ASSIGN_OR_RETURN(shape, Annotated(FillLayers(&block.layers, shape, starts_model),
                                      absl::StrCat("block ", block.name)));
    block.out = shape;
  }
  model->positions = model->tokens && shape.rank() == 3 ? shape[1] : 1;
  return CheckIdsAreThere(*model);
}

}  // namespace thinwire
