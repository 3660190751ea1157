// Operands that attention reads and writes, whichever code computes it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace thinwire::cuda {

// Rows of [head_size] elements. The row of sample s, position t and head h begins s sample + t
// position + h head elements after `data`.
struct HeadRows {
  void* data = nullptr;
  int64_t sample = 0, position = 0, head = 0;

  template <typename T>
  __device__ T* Row(int64_t s, int64_t t, int64_t h) const {
    return static_cast<T*>(data) + s * sample + t * position + h * head;
  }
};

// Sizes and tensors of one call.
struct AttentionOperands {
  int64_t batch = 0, heads = 0, kv_heads = 0, head_size = 0;
  int64_t queries = 0;      // number of positions
  float scale = 1;          // factor of scores
  HeadRows q, k, v, y;      // with rotary positions, q and k are rotated
  HeadRows dy, dq, dk, dv;  // backward; dk and dv have rows for the queries' positions
  // [batch, heads, queries]: natural logarithms, for the scaled scores; null: not wanted.
  float* log_sum_exp = nullptr;
  bool causal = true;
};

}  // namespace thinwire::cuda
