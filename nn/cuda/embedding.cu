#include "nn/cuda/kernels.h"
#include "nn/cuda/rows.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

__device__ inline bool IsWithin(int32_t id, int64_t vocabulary) {
  return id >= 0 && id < vocabulary;
}

// Writes the rows of y, one warp for each.
template <typename T, int kN>
__global__ void EmbedRows(Embedding a, int64_t rows) {
  const RowThread<1> thread;
  if (thread.row >= rows) return;
  const float* of_table = nullptr;
  bool known = true;
  if (a.table != nullptr) {
    const int32_t id = a.ids.as<const int32_t>()[thread.row];
    known = IsWithin(id, a.vocabulary);
    of_table = a.table + (known ? id : 0) * a.features;
  }
  for (int64_t j = thread.index * kN; j < a.features; j += thread.kCount * kN) {
    float values[kN], position[kN];
    if (of_table != nullptr) {
      LoadAligned(of_table + j, values);
    } else {
      LoadAligned(a.x.as<const T>() + thread.row * a.features + j, values);
    }
    if (a.positions != nullptr) {
      const int64_t at = a.first_position + thread.row % a.y.dims[1];
      LoadAligned(a.positions + at * a.features + j, position);
#pragma unroll
      for (int i = 0; i < kN; ++i) values[i] += position[i];
    }
#pragma unroll
    for (int i = 0; i < kN; ++i) values[i] = known ? values[i] : nanf("");
    StoreAligned(values, a.y.as<T>() + thread.row * a.features + j);
  }
}

// Rows, of 256 neighbouring ones, that have the block's id, in ascending order.
struct EqualRows {
  int count;
  int of[kThreads];
};

// Collects the rows whose thread passes `equal`. The whole block calls it, and it acts as a
// __syncthreads(). A row's place is the number of equal rows before it: by ballot and popcount
// within its warp, by sums over the warps before.
__device__ inline void Collect(bool equal, EqualRows* found) {
  __shared__ int of_warps[kWarps];
  const unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
  const unsigned of_warp = __ballot_sync(kWholeWarp, equal);
  if (lane == 0) of_warps[warp] = __popc(of_warp);
  __syncthreads();
  int before = __popc(of_warp & ((1u << lane) - 1)), count = 0;
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w == warp) before += count;
    count += of_warps[w];
  }
  if (equal) found->of[before] = static_cast<int>(threadIdx.x);
  if (threadIdx.x == 0) found->count = count;
  __syncthreads();
}

// Adds to the table. The first row of each id has a block that adds all rows of the id in ascending
// order. This needs neither atomics nor sorting: each block reads all ids, which stay in the cache.
template <typename T, int kN>
__global__ void AddToTable(const int32_t* ids, const T* dy, float* dtable, int64_t vocabulary,
                           int64_t features, int64_t rows) {
  __shared__ EqualRows found;
  const int64_t own = blockIdx.x;
  const int32_t id = ids[own];
  if (!IsWithin(id, vocabulary)) return;
  float* const sums = dtable + id * features;
  for (int64_t first = 0; first < rows; first += kThreads) {
    const int64_t row = first + threadIdx.x;
    const bool equal = row < rows && ids[row] == id;
    // An earlier row has the same id, so the block of that row does the work.
    if (__syncthreads_or(equal && row < own)) return;
    if (first + kThreads <= own) continue;
    Collect(equal, &found);
    for (int64_t j = static_cast<int64_t>(threadIdx.x) * kN; j < features; j += kThreads * kN) {
      if (found.count == 0) break;
      float sum[kN], values[kN];
      LoadAligned(sums + j, sum);
      for (int k = 0; k < found.count; ++k) {
        LoadAligned(dy + (first + found.of[k]) * features + j, values);
#pragma unroll
        for (int i = 0; i < kN; ++i) sum[i] += values[i];
      }
      StoreAligned(sum, sums + j);
    }
    __syncthreads();  // before `found` is overwritten
  }
}

// Adds to the positions' rows. Each thread has one vector of a position's row and adds up all
// samples.
template <typename T, int kN>
__global__ void AddToPositions(const T* dy, float* dpositions, int64_t batch, int64_t of_sample) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kN;
  if (at >= of_sample) return;
  float sum[kN], values[kN];
  LoadAligned(dpositions + at, sum);
  for (int64_t sample = 0; sample < batch; ++sample) {
    LoadAligned(dy + sample * of_sample + at, values);
#pragma unroll
    for (int i = 0; i < kN; ++i) sum[i] += values[i];
  }
  StoreAligned(sum, dpositions + at);
}

}  // namespace

Error Kernels::Embed(const Embedding& a) {
  if (a.table != nullptr && a.ids.dtype != DType::kI32) {
    return MakeError(absl::StatusCode::kInvalidArgument, "embedding: ids are %s, want int32",
                     Name(a.ids.dtype));
  }
  if (a.y.elements() == 0) return Error{};
  const int64_t rows = a.y.elements() / a.features;
  return WithElements(a.y.dtype, IsWide(a.y, a.x.data, a.table, a.positions), [&](auto elements) {
    return Launch(device_, BlocksWith(kWarps, rows), dim3(kThreads),
                  EmbedRows<typename decltype(elements)::Type, decltype(elements)::kVector>, a,
                  rows);
  });
}

Error Kernels::EmbedBackward(const EmbeddingBackward& a) {
  if (a.dy.elements() == 0) return Error{};
  const int64_t rows = a.dy.elements() / a.features, of_sample = a.dy.dims[1] * a.features;
  float* const dpositions =
      a.dpositions == nullptr ? nullptr : a.dpositions + a.first_position * a.features;
  const bool wide = IsWide(a.dy, a.dtable, dpositions);
  return WithElements(a.dy.dtype, wide, [&](auto elements) {
    using T = typename decltype(elements)::Type;
    constexpr int kN = decltype(elements)::kVector;
    const auto* const dy = static_cast<const T*>(a.dy.data);
    if (a.dtable != nullptr) {
      RETURN_ERROR(Launch(device_, BlocksWith(1, rows), dim3(kThreads), AddToTable<T, kN>,
                          static_cast<const int32_t*>(a.ids.data), dy, a.dtable, a.vocabulary,
                          a.features, rows));
    }
    if (dpositions == nullptr) return Error{};
    return Launch(device_, BlocksWith(kThreads * kN, of_sample), dim3(kThreads),
                  AddToPositions<T, kN>, dy, dpositions, a.dy.dims[0], of_sample);
  });
}

}  // namespace thinwire::cuda
