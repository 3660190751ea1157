#include "nn/layers/layer_norm.h"

#include <utility>

#include "base/status.h"

namespace thinwire {

LayerNormLayer::LayerNormLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                               const LayerContext& context)
    : features_(spec.in_features),
      epsilon_(static_cast<float>(spec.epsilon)),
      centred_(spec.kind == LayerKind::kLayerNorm),
      context_(context),
      weight_(FindParameter(parameters, spec.name + ".weight")),
      bias_(centred_ && spec.bias ? FindParameter(parameters, spec.name + ".bias") : nullptr) {}

absl::StatusOr<Tensor> LayerNormLayer::Forward(Tensor x, const Pass& pass, Saved* saved) {
  ASSIGN_OR_RETURN(Normalized normalized, ForwardAdding({std::move(x), Tensor()}, pass, saved));
  return std::move(normalized.y);
}

absl::StatusOr<Summands> LayerNormLayer::ForwardSum(Summands x, const Pass& pass, Saved* saved) {
  ASSIGN_OR_RETURN(Normalized normalized, ForwardAdding(std::move(x), pass, saved));
  return Summands{std::move(normalized.y), Tensor()};
}

absl::StatusOr<LayerNormLayer::Normalized> LayerNormLayer::ForwardAdding(Summands x,
                                                                         const Pass& pass,
                                                                         Saved* saved) {
  const int64_t rows = x.x.elements() / features_;
  ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(x.x.shape()));
  // One row for rstd, one for the mean.
  ASSIGN_OR_RETURN(Tensor statistics,
                   Tensor::Allocate(context_.device, DType::kF32, {centred_ ? 2 : 1, rows}));
  Tensor sum;
  if (!x.addend.empty()) {
    ASSIGN_OR_RETURN(sum, context_.InPlaceOrNew(x.x));
  }
  LayerNormForward a;
  a.x = x.x.view();
  a.addend = x.addend.view();
  a.sum = sum.view();
  a.y = y.view();
  a.scale = Floats(weight_->value);
  a.bias = bias_ ? Floats(bias_->value) : nullptr;
  a.rstd = Floats(statistics);
  a.mean = centred_ ? Floats(statistics) + rows : nullptr;
  a.epsilon = epsilon_;
  a.centred = centred_;
  RETURN_IF_ERROR(ToStatus(context_.ops->NormalizeRows(a)));
  if (!x.addend.empty()) x.x = std::move(sum);
  if (pass.mode == Mode::kTrain) {
    saved->Push(x.x);
    saved->Push(std::move(statistics));
  }
  return Normalized{std::move(x.x), std::move(y)};
}

absl::StatusOr<Tensor> LayerNormLayer::BackwardAdding(Tensor dy, Tensor addend, Saved* saved) {
  const Tensor statistics = saved->Pop();
  const Tensor x = saved->Pop();
  ASSIGN_OR_RETURN(Tensor dx, context_.NewTensor(dy.shape()));
  LayerNormBackward a;
  a.x = x.view();
  a.dy = dy.view();
  a.dx = dx.view();
  a.addend = addend.view();
  a.scale = Floats(weight_->value);
  a.rstd = Floats(statistics);
  a.mean = centred_ ? Floats(statistics) + statistics.shape()[1] : nullptr;
  a.dscale = Floats(weight_->gradient);
  a.dbias = bias_ ? Floats(bias_->gradient) : nullptr;
  a.centred = centred_;
  RETURN_IF_ERROR(ToStatus(context_.ops->NormalizeRowsBackward(a)));
  return dx;
}

}  // namespace thinwire
