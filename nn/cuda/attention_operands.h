// What attention reads and writes, whoever computes it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace thinwire::cuda {

// Rows of [head_size] elements: of sample s, position t and head h begins
// s sample + t position + h head elements behind `data`.
struct HeadRows {
  void* data = nullptr;
  int64_t sample = 0, position = 0, head = 0;

  template <typename T>
  __device__ T* Row(int64_t s, int64_t t, int64_t h) const {
    return static_cast<T*>(data) + s * sample + t * position + h * head;
  }
};

struct AttentionOperands {
  int64_t batch = 0, heads = 0, kv_heads = 0, head_size = 0;
  int64_t queries = 0;      // positions
  float scale = 1;          // of scores
  HeadRows q, k, v, y;      // queries and keys turned, where rotary
  HeadRows dy, dq, dk, dv;  // backward; rows of dk and dv are the queries' positions
  // [batch, heads, queries], natural, of the scaled scores; null: not wanted.
  float* log_sum_exp = nullptr;
};

}  // namespace thinwire::cuda
