#include "nn/cuda/kernels.h"
#include "nn/cuda/rows.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

// Sequences of ids: [samples, positions].
struct Ids {
  const int32_t* data;
  int64_t samples, positions;
};

__global__ void CountToLastOther(Ids ids, int32_t pad, int32_t* lengths) {
  const RowThread<1> thread;
  if (thread.row >= ids.samples) return;
  const int32_t* const of_sample = ids.data + thread.row * ids.positions;
  int32_t length = 1;
  for (int64_t t = thread.index; t < ids.positions; t += thread.kCount) {
    if (of_sample[t] != pad) length = static_cast<int32_t>(t) + 1;
  }
  length = thread.Reduce<Greatest>(length);
  if (thread.index == 0) lengths[thread.row] = length;
}

// Returns the first position from `begin` on that has the id, or the number of positions.
__device__ inline int32_t Find(const RowThread<1>& thread, const int32_t* of_sample,
                               int64_t positions, int32_t id, int64_t begin) {
  auto found = static_cast<int32_t>(positions);
  for (int64_t t = begin + thread.index; t < positions; t += thread.kCount) {
    if (of_sample[t] != id) continue;
    found = static_cast<int32_t>(t);
    break;
  }
  return thread.Reduce<Least>(found);
}

__global__ void TypeBySeparators(Ids ids, int32_t separator, int32_t* types) {
  const RowThread<1> thread;
  if (thread.row >= ids.samples) return;
  const int32_t* const of_sample = ids.data + thread.row * ids.positions;
  const int32_t first = Find(thread, of_sample, ids.positions, separator, 0);
  const int32_t second = Find(thread, of_sample, ids.positions, separator, first + 1);
  for (int64_t t = thread.index; t < ids.positions; t += thread.kCount) {
    const bool is_second = second < ids.positions && first < t && t <= second;
    types[thread.row * ids.positions + t] = is_second ? 1 : 0;
  }
}

Ids IdsOf(const TensorView& ids) {
  return {static_cast<const int32_t*>(ids.data), ids.dims[0], ids.dims[1]};
}

}  // namespace

Error Kernels::CountPositions(const TensorView& ids, int32_t pad, int32_t* lengths) {
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  return Launch(stream, BlocksWith(kWarps, ids.dims[0]), dim3(kThreads), CountToLastOther,
                IdsOf(ids), pad, lengths);
}

Error Kernels::TokenTypes(const TensorView& ids, int32_t separator, const TensorView& types) {
  cudaStream_t stream;
  RETURN_ERROR(device_->Stream(&stream));
  return Launch(stream, BlocksWith(kWarps, ids.dims[0]), dim3(kThreads), TypeBySeparators,
                IdsOf(ids), separator, static_cast<int32_t*>(types.data));
}

}  // namespace thinwire::cuda
