#include "nn/newton_schulz.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"

namespace thinwire {
namespace {

constexpr int kSteepSteps = 5;
constexpr double kEpsilon = 1e-7;

TensorView ViewOf(const Matrix& matrix) {
  return thinwire::ViewOf(matrix.data, DType::kF32, {matrix.rows, matrix.columns});
}

}  // namespace

absl::StatusOr<Linear*> NewtonSchulz::LinearOf(int64_t in, int64_t out) {
  std::unique_ptr<Linear>& linear = linears_[{in, out}];
  if (linear == nullptr) {
    LinearSpec spec;
    spec.in_features = in;
    spec.out_features = out;
    Linear* made = nullptr;
    RETURN_IF_ERROR(ToStatus(ops_->NewLinear(spec, &made)));
    linear.reset(made);
  }
  return linear.get();
}

absl::Status NewtonSchulz::TimesTransposed(const Matrix& a, const Matrix& b,
                                           const Matrix& product) {
  ASSIGN_OR_RETURN(Linear * linear, LinearOf(b.columns, b.rows));
  RETURN_IF_ERROR(ToStatus(linear->LoadWeights(b.data, nullptr)));
  return ToStatus(linear->Forward(ViewOf(a), ViewOf(product)));
}

absl::Status NewtonSchulz::Times(const Matrix& a, const Matrix& b, const Matrix& product) {
  ASSIGN_OR_RETURN(Linear * linear, LinearOf(b.columns, b.rows));
  RETURN_IF_ERROR(ToStatus(linear->LoadWeights(b.data, nullptr)));
  return ToStatus(linear->BackwardData(ViewOf(a), ViewOf(product)));
}

absl::Status NewtonSchulz::TransposedTimes(const Matrix& a, const Matrix& b,
                                           const Matrix& product) {
  ASSIGN_OR_RETURN(Linear * linear, LinearOf(b.columns, a.columns));
  RETURN_IF_ERROR(ToStatus(ops_->Zero(product.data, product.elements())));
  return ToStatus(linear->BackwardWeights(ViewOf(b), ViewOf(a), product.data, nullptr));
}

// Computes x x^T, or x^T x if x has more rows than columns: the smaller of the two.
absl::Status NewtonSchulz::Gram(const Matrix& x, const Matrix& gram) {
  return x.rows <= x.columns ? TimesTransposed(x, x, gram) : TransposedTimes(x, x, gram);
}

absl::Status NewtonSchulz::Orthogonalise(const Matrix& from, const Matrix& to) {
  const FloatRange range = {from.data, from.elements()};
  double squares = 0;
  RETURN_IF_ERROR(ToStatus(ops_->SumsOfSquares(&range, 1, &squares)));
  const auto scale = static_cast<float>(1 / (std::sqrt(squares) + kEpsilon));
  RETURN_IF_ERROR(ToStatus(ops_->Combine({scale, from.data, 0, nullptr, to.data, to.elements()})));
  return Apply(kSteepQuintic, kSteepSteps, to);
}

absl::Status NewtonSchulz::Apply(const OddQuintic& p, int steps, const Matrix& x) {
  const int64_t side = std::min(x.rows, x.columns);
  ASSIGN_OR_RETURN(const Tensor gram_of, Tensor::Allocate(device_, DType::kF32, {side, side}));
  ASSIGN_OR_RETURN(const Tensor factor_of, Tensor::Allocate(device_, DType::kF32, {side, side}));
  ASSIGN_OR_RETURN(const Tensor product_of,
                   Tensor::Allocate(device_, DType::kF32, {x.rows, x.columns}));
  const Matrix gram = MatrixOf(gram_of), factor = MatrixOf(factor_of);
  const Matrix product = MatrixOf(product_of);
  for (int i = 0; i < steps; ++i) {
    RETURN_IF_ERROR(Gram(x, gram));
    const float* squared = nullptr;
    if (p.c != 0) {
      RETURN_IF_ERROR(TimesTransposed(gram, gram, factor));  // gram is symmetric
      squared = factor.data;
    }
    RETURN_IF_ERROR(
        ToStatus(ops_->Combine({p.b, gram.data, p.c, squared, factor.data, factor.elements()})));
    RETURN_IF_ERROR(x.rows <= x.columns ? Times(factor, x, product)
                                        : TimesTransposed(x, factor, product));
    RETURN_IF_ERROR(ToStatus(ops_->Combine({p.a, x.data, 1, product.data, x.data, x.elements()})));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
