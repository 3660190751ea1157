// Matrices brought near to orthonormal ones by products alone: an odd polynomial of a matrix is
// that polynomial of its singular values (Bjorck & Bowie, 1971; Higham, 2008). On any backend, in
// fp32.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/ops.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// In device memory, fp32, row by row.
struct Matrix {
  float* data = nullptr;
  int64_t rows = 0, columns = 0;

  int64_t elements() const { return rows * columns; }
};

// The memory of an fp32 tensor as a matrix whose rows are its last axis.
inline Matrix MatrixOf(const Tensor& tensor) {
  const int64_t columns = tensor.shape()[tensor.shape().rank() - 1];
  return {static_cast<float*>(tensor.data()), tensor.elements() / columns, columns};
}

// p(X) = a X + b (X X^T) X + c (X X^T)^2 X.
struct OddQuintic {
  float a = 0, b = 0, c = 0;
};

// Of Jordan et al. (2024): five times on singular values from some hundredths to 1 give values
// between about 0.7 and 1.2.
inline constexpr OddQuintic kSteepQuintic = {3.4445f, -4.7750f, 2.0315f};
// Newton's: values between 0 and sqrt(3) converge to 1, in the end quadratically.
inline constexpr OddQuintic kNewtonsCubic = {1.5f, -0.5f, 0};

// One thread at a time.
class NewtonSchulz {
 public:
  // Both outlive it.
  NewtonSchulz(Device* device, Ops* ops) : device_(device), ops_(ops) {}

  // x = p(x), `steps` times. The products are made on the shorter side.
  absl::Status Apply(const OddQuintic& p, int steps, const Matrix& x);

  // product = a b^T, of [n, k] and [m, k].
  absl::Status TimesTransposed(const Matrix& a, const Matrix& b, const Matrix& product);
  // product = a b, of [n, k] and [k, m].
  absl::Status Times(const Matrix& a, const Matrix& b, const Matrix& product);
  // product = a^T b, of [n, k] and [n, m].
  absl::Status TransposedTimes(const Matrix& a, const Matrix& b, const Matrix& product);

 private:
  // Maps `in` features to `out`.
  absl::StatusOr<Linear*> LinearOf(int64_t in, int64_t out);
  absl::Status Gram(const Matrix& x, const Matrix& gram);

  Device* const device_;
  Ops* const ops_;
  std::map<std::pair<int64_t, int64_t>, std::unique_ptr<Linear>> linears_;
};

}  // namespace thinwire
