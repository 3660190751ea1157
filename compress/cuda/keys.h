// Keys by which the K largest elements are chosen: the bits of |x|, which are ordered like the
// values, or random draws.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/bitmap.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

// Elements in device memory, `total` in scopes of `elements` each, one after the other, of which
// the last may be shorter. Elements without support count as zeros, whatever they hold.
struct Keys {
  const void* data = nullptr;         // null: the draws of `seed`, none of them zero
  DType dtype = DType::kF32;          // or kBF16
  const uint32_t* support = nullptr;  // a bitmap (bitmap.h), or null: all have support
  int64_t total = 0;
  int64_t elements = 0;
  uint64_t seed = 0;

  int64_t scopes() const { return (total + elements - 1) / elements; }
};

// Returns the keys of a tensor that is one scope. `support` may be null.
inline Keys KeysOf(const TensorView& x, const SupportView* support) {
  return {x.data, x.dtype, WordsOf(support), x.elements(), x.elements()};
}

// Rule that says which keys are kept: the `k` largest of each scope, the first among equal ones.
struct KeepRule {
  int64_t k = 0;          // 1 to the scope's elements
  int64_t k_of_last = 0;  // likewise of the last scope
  bool zeros = false;     // keep zeros too if a scope has fewer than k others

  __host__ __device__ int64_t k_of(int64_t scope, int64_t scopes) const {
    return scope + 1 < scopes ? k : k_of_last;
  }
};

}  // namespace thinwire
