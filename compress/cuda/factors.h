// Products of tall matrices with a few columns and of a few columns with each other, for low_rank:
// all matrices of a tensor at once. Sums are those of compress/cpu/factors.h, in its order, but for
// where MultiplyTransposed says so.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/low_rank_matrices.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// What a matrix shows on the way, as bits of magnitudes; zero before. At least kInfinityBits if
// anything is not finite.
struct LowRankExtremes {
  uint32_t matrix;  // largest |entry|
  uint32_t factor;  // of Q
};

// P = M S with S of [count, rank, columns]; `p`: [count, rank, rows]. Writes extremes[i].matrix,
// and multiplies M by LowRankLift of it.
Error MultiplyByFactor(cudaStream_t stream, const TensorView& x, const LowRankMatrices& matrices,
                       const float* s, float* p, LowRankExtremes* extremes);

// Q = M^T P, with M multiplied by its lift and Q divided by it, as [columns, rank] behind the
// P of each matrix's `payload`; writes extremes[i].factor. As on the CPU blocks of rows are added
// in fp64, but in parts, whose sums are added at the end: `partial` has memory for these.
int64_t TransposedParts(const LowRankMatrices& matrices);
Error MultiplyTransposed(cudaStream_t stream, const TensorView& x, const LowRankMatrices& matrices,
                         const float* p, double* partial, float* payload,
                         LowRankExtremes* extremes);

// P of [count, rank, rows] as [rows, rank] into the payloads.
Error StoreFactor(cudaStream_t stream, const LowRankMatrices& matrices, const float* p,
                  float* payload);

// M = P Q^T of the payloads. `q`: memory for [count, rank, columns]. Sets *nonfinite, zero before,
// unless factors and products are all finite.
Error MultiplyFactors(cudaStream_t stream, const float* payload, const LowRankMatrices& matrices,
                      float* q, const TensorView& x, uint32_t* nonfinite);

}  // namespace thinwire
