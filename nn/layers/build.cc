#include "nn/layers/build.h"

#include <utility>

#include "base/status.h"
#include "nn/layers/batch_norm.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/layers/kinds.h"
#include "nn/layers/layer_norm.h"
#include "nn/layers/residual.h"
#include "nn/layers/simple.h"
#include "nn/layers/slices.h"
#include "nn/layers/sum.h"

namespace thinwire {
namespace {

bool IsNorm(LayerKind kind) { return kind == LayerKind::kLayerNorm || kind == LayerKind::kRmsNorm; }

bool IsKind(absl::Span<const LayerSpec> specs, size_t i, LayerKind kind) {
  return i < specs.size() && specs[i].kind == kind;
}

// Returns whether two linear layers with GELU between begin at i. GELU can be done in their
// products then.
bool IsGeluPair(absl::Span<const LayerSpec> specs, size_t i) {
  return IsKind(specs, i, LayerKind::kLinear) && IsKind(specs, i + 1, LayerKind::kGelu) &&
         specs[i + 1].gelu == GeluForm::kTanh && IsKind(specs, i + 2, LayerKind::kLinear) &&
         specs[i].adapters.empty() && specs[i + 2].adapters.empty();
}

// Returns whether a layer can take over the ReLU that follows it.
bool TakesRelu(const LayerSpec& spec) {
  if (spec.kind == LayerKind::kBatchNorm) return true;
  return spec.kind == LayerKind::kResidual && !spec.body.empty() &&
         spec.body.back().kind == LayerKind::kBatchNorm;
}

struct Builder {
  absl::Span<Parameter> parameters;
  const LayerContext& context;

  absl::StatusOr<std::unique_ptr<Layer>> Residual(const LayerSpec& spec, bool relu,
                                                  bool needs_dx) const {
    absl::Span<const LayerSpec> body = spec.body;
    ResidualParts parts;
    if (spec.shortcut.empty() && !body.empty() && IsNorm(body.front().kind)) {
      parts.first = std::make_unique<LayerNormLayer>(body.front(), parameters, context);
      body.remove_prefix(1);
    }
    if (TakesRelu(spec)) {
      parts.last = std::make_unique<BatchNormLayer>(body.back(), relu, parameters, context);
      body.remove_suffix(1);
    }
    const bool body_needs_dx = needs_dx || parts.first != nullptr;
    ASSIGN_OR_RETURN(parts.body, BuildLayers(body, body_needs_dx, parameters, context));
    ASSIGN_OR_RETURN(parts.shortcut, BuildLayers(spec.shortcut, needs_dx, parameters, context));
    return std::make_unique<ResidualLayer>(std::move(parts), context);
  }

  absl::StatusOr<std::unique_ptr<Layer>> Sum(const LayerSpec& spec, bool needs_dx) const {
    std::vector<std::unique_ptr<Sequence>> parts;
    for (const LayerSpec& part : spec.body) {
      ASSIGN_OR_RETURN(parts.emplace_back(), BuildLayers(part.body, needs_dx, parameters, context));
    }
    return std::make_unique<SumLayer>(spec, std::move(parts), parameters, context);
  }

  absl::StatusOr<std::unique_ptr<Layer>> Build(const LayerSpec& spec, bool relu, bool needs_dx,
                                               bool makes_logits) const {
    switch (spec.kind) {
      case LayerKind::kConv2d:
        return NewConv2dLayer(spec, needs_dx, parameters, context);
      case LayerKind::kLinear:
        return spec.adapters.empty()
                   ? NewLinearLayer(spec, needs_dx, makes_logits, parameters, context)
                   : NewAdaptedLayer(spec, needs_dx, parameters, context);
      case LayerKind::kBatchNorm:
        return std::make_unique<BatchNormLayer>(spec, relu, parameters, context);
      case LayerKind::kLayerNorm:
      case LayerKind::kRmsNorm:
        return std::make_unique<LayerNormLayer>(spec, parameters, context);
      case LayerKind::kHeadNorm:
        return std::make_unique<HeadNormLayer>(spec, parameters, context);
      case LayerKind::kResidual:
        return Residual(spec, relu, needs_dx);
      case LayerKind::kSum:
        return Sum(spec, needs_dx);
      case LayerKind::kPart:  // Sum builds it
        break;
      case LayerKind::kToSlices:
        return std::make_unique<ToSlicesLayer>(spec, needs_dx, context);
      case LayerKind::kToWhole:
        return std::make_unique<ToWholeLayer>(spec, context);
      case LayerKind::kReLU:
        return std::make_unique<ReluLayer>(context);
      case LayerKind::kMaxPool:
        return Keeping(spec, context, Needed::kExact, &Ops::MaxPool, &Ops::MaxPoolBackward,
                       PoolSpec{spec.kernel, spec.stride, spec.padding});
      case LayerKind::kMaxout:
        return Keeping(spec, context, Needed::kExact, &Ops::Maxout, &Ops::MaxoutBackward,
                       spec.group);
      case LayerKind::kResize:
        return Plain(spec, context, &Ops::Resize, &Ops::Resize);
      case LayerKind::kGlobalAvgPool:
        return Plain(spec, context, &Ops::GlobalAvgPool, &Ops::GlobalAvgPoolBackward);
      case LayerKind::kFlatten:
        return Plain(spec, context, &Ops::ToChannelsFirst, &Ops::ToChannelsLast);
      case LayerKind::kEmbedding:
        return std::make_unique<EmbeddingLayer>(spec, parameters, context);
      case LayerKind::kPositionEmbedding:
        return std::make_unique<PositionEmbeddingLayer>(spec, parameters, context);
      case LayerKind::kGelu:
        return Keeping(spec, context, Needed::kValues, &Ops::Apply, &Ops::ApplyBackward,
                       spec.gelu == GeluForm::kTanh ? Pointwise::kTanhGelu : Pointwise::kExactGelu);
      case LayerKind::kTypeEmbedding:
        return std::make_unique<TypeEmbeddingLayer>(spec, parameters, context);
      case LayerKind::kClassToken:
        return std::make_unique<ClassTokenLayer>(spec, parameters, context);
      case LayerKind::kSequence:
        return std::make_unique<SequenceLayer>(spec);
      case LayerKind::kFirst:
        return NewFirstLayer(spec, context);
      case LayerKind::kTanh:
        return Keeping(spec, context, Needed::kValues, &Ops::Apply, &Ops::ApplyBackward,
                       Pointwise::kTanh);
      case LayerKind::kSwiglu:
        return Keeping(spec, context, Needed::kValues, &Ops::Swiglu, &Ops::SwigluBackward);
      case LayerKind::kAttention:
        return NewAttentionLayer(spec, context);
      case LayerKind::kDropout:
        return std::make_unique<DropoutLayer>(spec, context);
      case LayerKind::kProject:
      case LayerKind::kExpand:
        return NewBasisLayer(spec, parameters, context);
      case LayerKind::kAnchor:
        return NewAnchorLayer(spec, parameters, context);
    }
    return absl::InvalidArgumentError("unknown layer kind");
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Sequence>> BuildLayers(absl::Span<const LayerSpec> specs,
                                                      bool needs_dx,
                                                      absl::Span<Parameter> parameters,
                                                      const LayerContext& context,
                                                      bool makes_logits) {
  const Builder builder{parameters, context};
  auto sequence = std::make_unique<Sequence>(context);
  for (size_t i = 0; i < specs.size(); ++i) {
    const LayerSpec& spec = specs[i];
    if (IsGeluPair(specs, i)) {
      ASSIGN_OR_RETURN(
          auto pair, NewGeluPairLayer(spec, specs[i + 2], needs_dx || i > 0,
                                      makes_logits && i + 3 == specs.size(), parameters, context));
      sequence->Append(std::move(pair));
      i += 2;
      continue;
    }
    const bool relu = TakesRelu(spec) && IsKind(specs, i + 1, LayerKind::kReLU);
    ASSIGN_OR_RETURN(auto layer, builder.Build(spec, relu, needs_dx || i > 0,
                                               makes_logits && i + 1 == specs.size()));
    sequence->Append(std::move(layer));
    if (relu) ++i;
  }
  return sequence;
}

}  // namespace thinwire
