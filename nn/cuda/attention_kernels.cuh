// The arguments of attention's kernels, and the functions that launch them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "nn/cuda/attention_operands.h"
#include "nn/cuda/dropout_mask.cuh"
#include "tensor/cuda/device.h"
#include "tensor/dtype.h"

namespace thinwire::cuda {

// One call of attention, as kernels see it.
struct AttentionTask : AttentionOperands {
  DType type = DType::kF32;
  int64_t first_position = 0;  // of the queries; keys begin at position 0
  int64_t first_head = 0;      // as in AttentionSpec
  // fp32 rows for all positions: what later queries added to gradients of keys and values. Null:
  // none.
  HeadRows cached_dk, cached_dv;
  const float* means = nullptr;  // backward: dy . y, [batch, heads, queries]
  // Unless causal, number of keys that all queries of a sample see: [batch]. Null: all.
  const int32_t* lengths = nullptr;
  // As in AttentionForward and AttentionSpec; window is 0 where it is no shorter than the keys.
  const int32_t* first_key = nullptr;
  int64_t window = 0;
  DropoutMasks masks;

  __host__ __device__ int64_t keys() const { return first_position + queries; }
  __device__ int64_t group() const { return heads / kv_heads; }
  // Returns the number of keys, the first ones, that a query sees.
  __device__ int64_t SeenBy(int64_t sample, int64_t query) const {
    if (causal) return first_position + query + 1;
    return lengths == nullptr ? keys() : lengths[sample];
  }
  // Returns the number of keys that exist and that a query before `end` sees.
  __device__ int64_t SeenBefore(int64_t sample, int64_t end) const {
    const int64_t seen = SeenBy(sample, end - 1);
    return seen < keys() ? seen : keys();
  }
  __host__ __device__ bool looks_back_freely() const { return first_key == nullptr && window == 0; }
  // Returns the first key that a query sees. Later queries see it at most; queries that do not
  // exist are taken for the last one that does.
  __device__ int64_t FirstSeenBy(int64_t sample, int64_t query) const {
    if (query >= queries) query = queries - 1;
    const int64_t allowed = first_key == nullptr ? 0 : first_key[sample * queries + query];
    const int64_t in_window = window == 0 ? 0 : first_position + query - window + 1;
    return allowed > in_window ? allowed : in_window;
  }
  // Returns the number of queries, the first ones, of which none looks back beyond `key`.
  __device__ int64_t QueriesReaching(int64_t sample, int64_t key) const {
    if (looks_back_freely()) return queries;
    int64_t end = 0, beyond = queries;
    while (end < beyond) {  // FirstSeenBy never descends
      const int64_t middle = (end + beyond) / 2;
      if (FirstSeenBy(sample, middle) <= key) {
        end = middle + 1;
      } else {
        beyond = middle;
      }
    }
    return end;
  }
  // Returns the first query that may see `key`.
  __device__ int64_t FirstQuery(int64_t key) const {
    return causal && key > first_position ? key - first_position : 0;
  }
  // Adds what later queries gave to the gradient of an element of a key or value. Returns true if
  // the key is at the queries' positions, so that the gradient must be stored; otherwise writes it
  // to the cache.
  __device__ bool Complete(const HeadRows& cached, int64_t sample, int64_t key, int64_t head,
                           int64_t column, float* gradient) const {
    if (cached.data == nullptr) return true;
    float* const later = cached.Row<float>(sample, key, head) + column;
    *gradient += *later;
    if (key >= first_position) return true;
    *later = *gradient;
    return false;
  }
  // Returns the index of a query in log_sum_exp and means.
  __device__ int64_t StatisticAt(int64_t sample, int64_t head, int64_t query) const {
    return (sample * heads + head) * queries + query;
  }
  // Returns the index, in the sample's mask, of a query's first score.
  __device__ uint32_t ElementAt(int64_t head, int64_t query) const {
    return static_cast<uint32_t>(((first_head + head) * queries + query) * queries);
  }
};

// These take any type and head size.
Error AttendByTiles(CudaDevice* device, const AttentionTask& task);
Error DifferentiateByTiles(CudaDevice* device, const AttentionTask& task);

// These take bf16 and heads of 32, 64 or 128, with all rows aligned to 16 bytes.
Error AttendOnTensorCores(CudaDevice* device, const AttentionTask& task);
Error DifferentiateOnTensorCores(CudaDevice* device, const AttentionTask& task);

}  // namespace thinwire::cuda
