#include "nn/layers/batch_norm.h"

#include <utility>

#include "base/status.h"
#include "nn/parameters.h"

namespace thinwire {

BatchNormLayer::BatchNormLayer(const LayerSpec& spec, bool relu, absl::Span<Parameter> parameters,
                               const LayerContext& context)
    : relu_(relu),
      channels_(spec.in_features),
      context_(context),
      weight_(FindParameter(parameters, spec.name + ".weight")),
      bias_(FindParameter(parameters, spec.name + ".bias")),
      running_mean_(FindParameter(parameters, spec.name + ".running_mean")),
      running_var_(FindParameter(parameters, spec.name + ".running_var")) {}

absl::StatusOr<Tensor> BatchNormLayer::ForwardAdding(Tensor x, Tensor residual, const Pass& pass,
                                                     Saved* saved) {
  ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(x.shape()));
  ASSIGN_OR_RETURN(Tensor statistics, Normalize(x, residual, y, pass));
  if (pass.mode != Mode::kTrain) return y;
  saved->Push(std::move(x));
  if (relu_) saved->Push(y, Needed::kSigns);
  saved->Push(std::move(statistics), Needed::kExact);
  return y;
}

// Normalises x into y. Returns mean and rstd as [2, channels]; an empty tensor from an evaluation.
absl::StatusOr<Tensor> BatchNormLayer::Normalize(const Tensor& x, const Tensor& residual,
                                                 const Tensor& y, const Pass& pass) const {
  Tensor statistics;
  BatchNormForward a;
  a.x = x.view();
  a.residual = residual.view();
  a.y = y.view();
  a.scale = Floats(weight_->value);
  a.bias = Floats(bias_->value);
  a.running_mean = Floats(running_mean_->value);
  a.running_var = Floats(running_var_->value);
  if (pass.mode != Mode::kEvaluate) {
    ASSIGN_OR_RETURN(statistics, Tensor::Allocate(context_.device, DType::kF32, {2, channels_}));
    a.mean = Floats(statistics);
    a.rstd = Floats(statistics) + channels_;
  }
  if (pass.mode == Mode::kRecalibrate) a.momentum = 1;
  if (pass.again) a.momentum = 0;
  a.relu = relu_;
  RETURN_IF_ERROR(ToStatus(context_.ops->NormalizeBatch(a)));
  return statistics;
}

absl::StatusOr<Tensor> BatchNormLayer::Backward(Tensor dy, Saved* saved) {
  ASSIGN_OR_RETURN(Tensor dx, context_.NewTensor(dy.shape()));
  RETURN_IF_ERROR(Differentiate({std::move(dy), Tensor()}, dx, Tensor(), saved));
  return dx;
}

absl::StatusOr<BatchNormLayer::Gradients> BatchNormLayer::BackwardAdding(Summands dy,
                                                                         Saved* saved) {
  Gradients gradients;
  if (relu_) {
    ASSIGN_OR_RETURN(gradients.dresidual, context_.NewTensor(dy.x.shape()));
  } else {
    ASSIGN_OR_RETURN(dy.x, context_.Sum(std::move(dy)));
    dy.addend = Tensor();
  }
  ASSIGN_OR_RETURN(gradients.dx, context_.NewTensor(dy.x.shape()));
  RETURN_IF_ERROR(Differentiate(dy, gradients.dx, gradients.dresidual, saved));
  if (!relu_) gradients.dresidual = std::move(dy.x);
  return gradients;
}

absl::Status BatchNormLayer::Differentiate(const Summands& dy, const Tensor& dx,
                                           const Tensor& dresidual, Saved* saved) {
  const Tensor statistics = saved->Pop();
  const Tensor y = relu_ ? saved->Pop() : Tensor();
  const Tensor x = saved->Pop();
  BatchNormBackward a;
  a.x = x.view();
  a.y = y.view();
  a.dy = dy.x.view();
  a.addend = dy.addend.view();
  a.dx = dx.view();
  a.dresidual = dresidual.view();
  a.scale = Floats(weight_->value);
  a.bias = Floats(bias_->value);
  a.mean = Floats(statistics);
  a.rstd = Floats(statistics) + channels_;
  a.dscale = Floats(weight_->gradient);
  a.dbias = Floats(bias_->gradient);
  a.relu = relu_;
  return ToStatus(context_.ops->NormalizeBatchBackward(a));
}

}  // namespace thinwire
