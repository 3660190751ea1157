// Parts of low_rank that every backend shares: the matrices of a tensor, where the power iteration
// starts, what is refused (docs/compression.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.h"
#include "compress/half.h"
#include "compress/spec.h"
#include "tensor/tensor.h"

namespace thinwire {

// All matrices of one tensor, one after the other. Their rows are rows of the tensor's last axis;
// in a tensor of one axis, single elements.
struct LowRankMatrices {
  int64_t count = 0;  // 0 for an empty tensor
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t rank = 0;

  // Return the number of floats of P, [rows, rank], and of Q, [columns, rank]. A matrix is sent as
  // P, then Q.
  HOST_DEVICE int64_t p_floats() const { return rows * rank; }
  HOST_DEVICE int64_t q_floats() const { return columns * rank; }
  size_t payload_bytes() const { return 4 * static_cast<size_t>(p_floats() + q_floats()); }
};

// Returns the matrices of a tensor. Nothing is checked.
LowRankMatrices LowRankMatricesOf(const Shape& shape, const CodecSpec& spec);
// Sets *matrices to those of x. InvalidArgument unless the rank is less than rows and columns.
Error LowRankMatricesOf(const TensorView& x, const CodecSpec& spec, LowRankMatrices* matrices);
// Does the same for all of x as one matrix, whatever spec.per_sample says.
Error LowRankMatrixOf(const TensorView& x, const CodecSpec& spec, LowRankMatrices* matrix);

// Returns the number of rows whose products with P are added in fp32 before the sum goes to fp64.
HOST_DEVICE inline int64_t LowRankBlockRows(int64_t columns) {
  const int64_t rows = 8192 / columns;
  return rows < 16 ? 16 : rows > 128 ? 128 : rows;
}

// Returns a power of two that keeps the largest value, whose bits are `largest`, far from the ends
// of fp32's range, where sums of products would be lost.
HOST_DEVICE inline float LowRankLift(uint32_t largest) {
  const float value = FloatOf(largest);
  if (value == 0 || (value >= 0x1p-60f && value <= 0x1p60f)) return 1;
  return value < 1 ? 0x1p64f : 0x1p-64f;
}

// Writes column j of the matrix from which the iteration starts, times a power of two so that its
// largest entry lies in [0.5, 1). Only its direction matters; scaled so, products neither overflow
// nor vanish. A column of zeros has no direction and starts afresh. `warm_start` is the matrix's
// [columns, rank], or null.
void LowRankStartColumn(const float* warm_start, int64_t columns, int64_t rank, int64_t j,
                        float* to);

// Returns InvalidArgument if an entry of Q is so large that a sum over the rank could overflow.
Error CheckLowRankFactor(float largest, int64_t rank);
// Divides the `p_floats` of P, of a matrix that was multiplied by `lift`, by that. InvalidArgument
// as above.
Error DropLowRankLift(float lift, const LowRankMatrices& matrix, float* p);

}  // namespace thinwire
