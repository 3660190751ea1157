// Runs an optimizer's step for many parameters in few launches: elementwise, in one pass over all
// arrays of an element.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/device.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {

constexpr int64_t kUpdatedElements = 4096;  // elements of one parameter that one block updates

// Arguments of one launch. Parameter p has n[p] elements in each of its arrays, of which the first
// is its value; a null array is absent.
template <int kArraysEach, int kMostParameters>
struct ParameterArrays {
  static constexpr int kArrays = kArraysEach, kMost = kMostParameters;

  float* array[kArrays][kMost];
  uint16_t* narrow[kMost];  // null, or the first array once more, in bf16
  int64_t n[kMost];
  int64_t first_block[kMost];
  int count;
};

// The factor of gradients; NaN means that nothing is updated.
struct GradientFactor {
  float value;
  const float* on_device;  // null: use `value`

  __device__ float Read() const { return on_device == nullptr ? value : __ldg(on_device); }
};

// Returns the parameter of block `block`, by binary search: the last of `count` whose first block
// is not behind it. Parameters without elements have no block and are skipped.
__device__ inline int ParameterOf(const int64_t* first_block, int count, int64_t block) {
  int low = 0, high = count;  // the answer is in [low, high)
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (first_block[middle] <= block) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

namespace parameter_update_internal {

__device__ inline bool IsAligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// Loads kN elements of each array, applies the rule to each element, and stores them.
template <int kN, typename Arrays, typename Rule>
__device__ inline void UpdateVector(const Arrays& a, const Rule& rule, int parameter, float factor,
                                    int64_t at) {
  constexpr int kArrays = Arrays::kArrays;
  float x[kArrays][kN] = {};
#pragma unroll
  for (int k = 0; k < kArrays; ++k) {
    if (a.array[k][parameter] != nullptr) LoadAligned(a.array[k][parameter] + at, x[k]);
  }
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    float element[kArrays];
#pragma unroll
    for (int k = 0; k < kArrays; ++k) element[k] = x[k][i];
    rule(parameter, factor, element);
#pragma unroll
    for (int k = 0; k < kArrays; ++k) x[k][i] = element[k];
  }
#pragma unroll
  for (int k = 0; k < kArrays; ++k) {
    if (a.array[k][parameter] != nullptr) StoreAligned(x[k], a.array[k][parameter] + at);
  }
  if (a.narrow[parameter] != nullptr) StoreAligned(x[0], a.narrow[parameter] + at);
}

// Updates one block's elements. A kernel takes at most 4 KiB of arguments.
template <typename Arrays, typename Rule>
__global__ void UpdateAll(Arrays a, Rule rule) {
  static_assert(sizeof(Arrays) + sizeof(Rule) <= 4096, "does not fit a launch");
  const float factor = rule.factor.Read();
  if (isnan(factor)) return;
  const int parameter = ParameterOf(a.first_block, a.count, blockIdx.x);
  const int64_t begin =
      (static_cast<int64_t>(blockIdx.x) - a.first_block[parameter]) * kUpdatedElements;
  const int64_t left = a.n[parameter] - begin;
  const int64_t end = begin + (left < kUpdatedElements ? left : kUpdatedElements);
  bool aligned = IsAligned(a.narrow[parameter]);
#pragma unroll
  for (int k = 0; k < Arrays::kArrays; ++k) aligned = aligned && IsAligned(a.array[k][parameter]);
  int64_t scalars = begin;  // elements from here on are updated one by one
  if (aligned) {
    scalars = end - (end - begin) % 4;
    for (int64_t at = begin + int64_t{4} * threadIdx.x; at < scalars; at += 4 * kThreads) {
      UpdateVector<4>(a, rule, parameter, factor, at);
    }
  }
  for (int64_t at = scalars + threadIdx.x; at < end; at += kThreads) {
    UpdateVector<1>(a, rule, parameter, factor, at);
  }
}

}  // namespace parameter_update_internal

// Updates `count` parameters. rule(p, factor, element) updates float element[kArrays] of parameter
// p of a launch; absent arrays have 0. `factor` is what rule.factor, a GradientFactor, reads.
// describe(i, p, &arrays, &rule) makes parameter i the p-th of a launch: it fills in arrays,
// narrow, n and the rule's part.
template <typename Arrays, typename Rule, typename Describe>
Error UpdateParameters(CudaDevice* device, int64_t count, Rule rule, const Describe& describe) {
  for (int64_t begin = 0; begin < count; begin += Arrays::kMost) {
    Arrays a{};
    a.count = static_cast<int>(std::min<int64_t>(count - begin, Arrays::kMost));
    int64_t blocks = 0;
    for (int p = 0; p < a.count; ++p) {
      describe(begin + p, p, &a, &rule);
      a.first_block[p] = blocks;
      blocks += (a.n[p] + kUpdatedElements - 1) / kUpdatedElements;
    }
    RETURN_ERROR(Launch(device, dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
                        parameter_update_internal::UpdateAll<Arrays, Rule>, a, rule));
  }
  return Error{};
}

}  // namespace thinwire::cuda
