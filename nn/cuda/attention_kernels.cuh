// What attention's kernels are told, and what launches them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "nn/cuda/attention_operands.h"
#include "nn/cuda/dropout_mask.cuh"
#include "tensor/cuda/device.h"
#include "tensor/dtype.h"

namespace thinwire::cuda {

struct AttentionTask : AttentionOperands {
  DType type = DType::kF32;
  int64_t first_position = 0;  // of the queries; keys begin at 0
  // Of all positions, fp32: what gradients of keys and values have from later queries. Null: none.
  HeadRows cached_dk, cached_dv;
  const float* means = nullptr;  // [batch, heads, queries], of dy . y; backward
  DropoutMasks masks;

  __host__ __device__ int64_t keys() const { return first_position + queries; }
  __device__ int64_t group() const { return heads / kv_heads; }
  // The first query that sees a key.
  __device__ int64_t FirstQuery(int64_t key) const {
    return key > first_position ? key - first_position : 0;
  }
  // Adds to the gradient of a key's or value's element what later queries gave. Whether it is of
  // the queries' positions, and so to be stored; else it is in the cache now.
  __device__ bool Complete(const HeadRows& cached, int64_t sample, int64_t key, int64_t head,
                           int64_t column, float* gradient) const {
    if (cached.data == nullptr) return true;
    float* const later = cached.Row<float>(sample, key, head) + column;
    *gradient += *later;
    if (key >= first_position) return true;
    *later = *gradient;
    return false;
  }
  // Of a query, in log_sum_exp and means.
  __device__ int64_t StatisticAt(int64_t sample, int64_t head, int64_t query) const {
    return (sample * heads + head) * queries + query;
  }
  // Of a query's first score, in the sample's mask.
  __device__ uint32_t ElementAt(int64_t head, int64_t query) const {
    return static_cast<uint32_t>((head * queries + query) * queries);
  }
};

// Any type and head size.
Error AttendByTiles(CudaDevice* device, const AttentionTask& task);
Error DifferentiateByTiles(CudaDevice* device, const AttentionTask& task);

// bf16, heads of 32, 64 or 128, all rows aligned to 16 bytes.
Error AttendOnTensorCores(CudaDevice* device, const AttentionTask& task);
Error DifferentiateOnTensorCores(CudaDevice* device, const AttentionTask& task);

}  // namespace thinwire::cuda
