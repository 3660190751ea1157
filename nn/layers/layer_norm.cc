#include "nn/layers/layer_norm.h"

#include <utility>

#include "base/status.h"
#include "nn/slice_copies.h"

namespace thinwire {

LayerNormLayer::LayerNormLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                               const LayerContext& context)
    : features_(spec.in_features),
      slices_(spec.slices),
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
    saved->Push(std::move(statistics), Needed::kExact);
  }
  return Normalized{std::move(x.x), std::move(y)};
}

absl::StatusOr<Tensor> LayerNormLayer::BackwardAdding(Tensor dy, Tensor addend, Saved* saved) {
  const Tensor statistics = saved->Pop();
  const Tensor x = saved->Pop();
  ASSIGN_OR_RETURN(Tensor dx, context_.NewTensor(dy.shape()));
  const int64_t rows = dy.elements() / features_;
  for (int group = 0; group < slices_.groups(); ++group) {
    const IndexRange range = slices_.RowsOf(group, rows);
    LayerNormBackward a;
    a.x = RowsAt(x, range);
    a.dy = RowsAt(dy, range);
    a.dx = RowsAt(dx, range);
    if (!addend.empty()) a.addend = RowsAt(addend, range);
    a.scale = Floats(weight_->value);
    a.rstd = Floats(statistics) + range.first;
    a.mean = centred_ ? Floats(statistics) + rows + range.first : nullptr;
    a.dscale = GradientOf(*weight_, group);
    a.dbias = bias_ ? GradientOf(*bias_, group) : nullptr;
    a.centred = centred_;
    RETURN_IF_ERROR(ToStatus(context_.ops->NormalizeRowsBackward(a)));
  }
  return dx;
}

absl::StatusOr<Tensor> HeadNormLayer::Forward(Tensor x, const Pass& pass, Saved* saved) {
  ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(x.shape()));
  ASSIGN_OR_RETURN(Tensor rstd,
                   Tensor::Allocate(context_.device, DType::kF32, {x.elements() / head_size_}));
  HeadNormForward a;
  SetSizes(&a);
  a.x = x.view();
  a.y = y.view();
  a.scale = Floats(weight_->value);
  a.rstd = Floats(rstd);
  a.epsilon = static_cast<float>(spec_.epsilon);
  RETURN_IF_ERROR(ToStatus(context_.ops->NormalizeHeads(a)));
  if (pass.mode == Mode::kTrain) {
    saved->Push(std::move(x));
    saved->Push(std::move(rstd), Needed::kExact);
  }
  return y;
}

absl::StatusOr<Tensor> HeadNormLayer::Backward(Tensor dy, Saved* saved) {
  const Tensor rstd = saved->Pop();
  const Tensor x = saved->Pop();
  ASSIGN_OR_RETURN(Tensor dx, context_.NewTensor(dy.shape()));
  HeadNormBackward a;
  SetSizes(&a);
  a.x = x.view();
  a.dy = dy.view();
  a.dx = dx.view();
  a.scale = Floats(weight_->value);
  a.rstd = Floats(rstd);
  a.dscale = Floats(weight_->gradient);
  RETURN_IF_ERROR(ToStatus(context_.ops->NormalizeHeadsBackward(a)));
  return dx;
}

}  // namespace thinwire
