// Makes matrices nearly orthonormal by products alone: an odd polynomial of a matrix applies that
// polynomial to its singular values (Bjorck & Bowie, 1971; Higham, 2008). On any backend, in fp32.
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

// A row-major fp32 matrix in device memory.
struct Matrix {
  float* data = nullptr;
  int64_t rows = 0, columns = 0;

  int64_t elements() const { return rows * columns; }
};

// Returns the memory of an fp32 tensor as a matrix; its rows are the tensor's last axis.
inline Matrix MatrixOf(const Tensor& tensor) {
  const int64_t columns = tensor.shape()[tensor.shape().rank() - 1];
  return {static_cast<float*>(tensor.data()), tensor.elements() / columns, columns};
}

// The polynomial p(X) = a X + b (X X^T) X + c (X X^T)^2 X.
struct OddQuintic {
  float a = 0, b = 0, c = 0;
};

// Polynomial of Jordan et al. (2024). Applied five times to singular values from some hundredths to
// 1, it gives values between about 0.7 and 1.2.
inline constexpr OddQuintic kSteepQuintic = {3.4445f, -4.7750f, 2.0315f};
// Newton's polynomial: values between 0 and sqrt(3) converge to 1, in the end quadratically.
inline constexpr OddQuintic kNewtonsCubic = {1.5f, -0.5f, 0};

// Not thread-safe.
class NewtonSchulz {
 public:
  // `device` and `ops` outlive it.
  NewtonSchulz(Device* device, Ops* ops) : device_(device), ops_(ops) {}

  // Sets x = p(x), `steps` times. The Gram matrices are those of the shorter side.
  absl::Status Apply(const OddQuintic& p, int steps, const Matrix& x);

  // Sets `to` to from / |from|, then applies kSteepQuintic five times. They may be the same.
  absl::Status Orthogonalise(const Matrix& from, const Matrix& to);

  // Computes product = a b^T; a: [n, k], b: [m, k].
  absl::Status TimesTransposed(const Matrix& a, const Matrix& b, const Matrix& product);
  // Computes product = a b; a: [n, k], b: [k, m].
  absl::Status Times(const Matrix& a, const Matrix& b, const Matrix& product);
  // Computes product = a^T b; a: [n, k], b: [n, m].
  absl::Status TransposedTimes(const Matrix& a, const Matrix& b, const Matrix& product);

 private:
  // Returns a linear layer of `in` features to `out`, which is kept for later calls.
  absl::StatusOr<Linear*> LinearOf(int64_t in, int64_t out);
  absl::Status Gram(const Matrix& x, const Matrix& gram);

  Device* const device_;
  Ops* const ops_;
  std::map<std::pair<int64_t, int64_t>, std::unique_ptr<Linear>> linears_;
};

}  // namespace thinwire
