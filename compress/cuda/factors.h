// Products of tall matrices with few columns, and of few columns with each other, for low_rank, and
// orthonormal bases of the columns; all matrices of a tensor at once. Sums and their order are
// those of compress/cpu/factors.h, except where MultiplyTransposed says so.
#pragma once

#include <cstdint>

#include "compress/low_rank_matrices.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Largest magnitudes met in a matrix, as bits; zero before. They are at least kInfinityBits if
// anything is not finite.
struct LowRankExtremes {
  uint32_t matrix;  // largest |entry|
  uint32_t factor;  // largest |entry| of Q
};

// Computes P = M S, with S of [count, rank, columns] and `p` of [count, rank, rows]. Writes
// extremes[i].matrix, and multiplies M by LowRankLift of it.
Error MultiplyByFactor(CudaDevice* device, const TensorView& x, const LowRankMatrices& matrices,
                       const float* s, float* p, LowRankExtremes* extremes);

// Computes Q = M^T P, with M multiplied by its lift and Q divided by it. Writes Q as [columns,
// rank] behind the P of each matrix's `payload`, and extremes[i].factor. As on the CPU blocks of
// rows are added in fp64, but in parts, whose sums are added at the end; `partial` has memory for
// these.
int64_t TransposedParts(const LowRankMatrices& matrices);
Error MultiplyTransposed(CudaDevice* device, const TensorView& x, const LowRankMatrices& matrices,
                         const float* p, double* partial, float* payload,
                         LowRankExtremes* extremes);

// Copies P of [count, rank, rows] as [rows, rank] into the payloads.
Error StoreFactor(CudaDevice* device, const LowRankMatrices& matrices, const float* p,
                  float* payload);

// Computes M = P Q^T from the payloads. `q` is memory for [count, rank, columns]. Sets *nonfinite,
// zero before, unless factors and products are all finite.
Error MultiplyFactors(CudaDevice* device, const float* payload, const LowRankMatrices& matrices,
                      float* q, const TensorView& x, uint32_t* nonfinite);

// Makes columns orthonormal as compress/cpu/orthonormal.h does, for `matrices` sets of columns, one
// after the other: p holds [matrices, count, n]. The steps are the same, but the order of the fp64
// sums is another, which n alone fixes.
Error Orthonormalise(CudaDevice* device, float* p, int64_t matrices, int64_t count, int64_t n);

}  // namespace thinwire
