#include "nn/stiefel.h"

#include <algorithm>

#include "base/status.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

constexpr float kMomentum = 0.95f;
constexpr double kGreatestRate = 0.5;
constexpr int kRetractionSteps = 8;

}  // namespace

absl::Status StiefelDescent::ToTangent(const Matrix& w, const Matrix& g) {
  const Shape square = {w.rows, w.rows};
  ASSIGN_OR_RETURN(const Tensor product, Tensor::Allocate(device_, DType::kF32, square));
  ASSIGN_OR_RETURN(const Tensor transposed, Tensor::Allocate(device_, DType::kF32, square));
  ASSIGN_OR_RETURN(const Tensor normal,
                   Tensor::Allocate(device_, DType::kF32, {w.rows, w.columns}));
  RETURN_IF_ERROR(newton_schulz_.TimesTransposed(g, w, MatrixOf(product)));
  RETURN_IF_ERROR(newton_schulz_.TimesTransposed(w, g, MatrixOf(transposed)));
  RETURN_IF_ERROR(ToStatus(ops_->Combine(
      {0.5f, Floats(product), 0.5f, Floats(transposed), Floats(product), product.elements()})));
  RETURN_IF_ERROR(newton_schulz_.Times(MatrixOf(product), w, MatrixOf(normal)));
  return ToStatus(ops_->Combine({1, g.data, -1, Floats(normal), g.data, g.elements()}));
}

absl::Status StiefelDescent::Step(double rate, double gradient_scale, const Parameter& parameter,
                                  const Tensor& momentum) {
  const Matrix w = MatrixOf(parameter.value), g = MatrixOf(parameter.gradient);
  const Matrix m = MatrixOf(momentum);
  const int64_t n = w.elements();
  RETURN_IF_ERROR(ToTangent(w, g));
  const auto gain = static_cast<float>((1 - static_cast<double>(kMomentum)) * gradient_scale);
  RETURN_IF_ERROR(ToStatus(ops_->Combine({kMomentum, m.data, gain, g.data, m.data, n})));
  RETURN_IF_ERROR(ToStatus(ops_->Zero(g.data, n)));
  ASSIGN_OR_RETURN(const Tensor direction,
                   Tensor::Allocate(device_, DType::kF32, parameter.value.shape()));
  const Matrix d = MatrixOf(direction);
  RETURN_IF_ERROR(newton_schulz_.Orthogonalise(m, d));
  const auto step = static_cast<float>(-std::min(rate, kGreatestRate));
  RETURN_IF_ERROR(ToStatus(ops_->Combine({1, w.data, step, d.data, w.data, n})));
  return newton_schulz_.Apply(kNewtonsCubic, kRetractionSteps, w);
}

}  // namespace thinwire
