#include "compress/context_choice.h"
#include "compress/cpu/stretches.h"
#include "compress/cuda/stretches.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = static_cast<int>(kStates);
constexpr int kRowsOfTile = 128;
// So that the bytes of a column are in unlike banks.
constexpr int kTileStride = kRowsOfTile + 4;

int64_t RowsOf(int64_t n) { return static_cast<int64_t>(NumRows(static_cast<size_t>(n))); }

// A block takes the same piece of each stretch.
__global__ void ToRowsKernel(const uint8_t* bytes, int64_t n, int64_t num_rows, uint8_t* rows) {
  __shared__ uint8_t tile[kLanes][kTileStride];
  const int64_t first = int64_t{blockIdx.x} * kRowsOfTile;
  for (int i = threadIdx.x; i < kLanes * kRowsOfTile; i += kThreads) {
    const int s = i / kRowsOfTile, j = i % kRowsOfTile;
    const int64_t at = s * num_rows + first + j;
    tile[s][j] = first + j < num_rows && at < n ? bytes[at] : 0;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kLanes * kRowsOfTile; i += kThreads) {
    const int j = i / kLanes, s = i % kLanes;
    if (first + j < num_rows) rows[(first + j) * kLanes + s] = tile[s][j];
  }
}

__global__ void FromRowsKernel(const uint8_t* rows, int64_t n, int64_t num_rows, uint8_t* bytes) {
  __shared__ uint8_t tile[kLanes][kTileStride];
  const int64_t first = int64_t{blockIdx.x} * kRowsOfTile;
  for (int i = threadIdx.x; i < kLanes * kRowsOfTile; i += kThreads) {
    const int j = i / kLanes, s = i % kLanes;
    if (first + j < num_rows) tile[s][j] = rows[(first + j) * kLanes + s];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kLanes * kRowsOfTile; i += kThreads) {
    const int s = i / kRowsOfTile, j = i % kRowsOfTile;
    const int64_t at = s * num_rows + first + j;
    if (first + j < num_rows && at < n) bytes[at] = tile[s][j];
  }
}

__global__ void SumsKernel(Neighbours neighbours, const uint8_t* rows, int64_t size,
                           uint8_t* sums) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= size) return;
  int sum = 0;
  for (int k = 0; k < neighbours.count; ++k) {
    const int64_t at = i - int64_t{neighbours.rows[k]} * kLanes;
    if (at >= 0) sum += (rows[at] + 1) / 2;
  }
  sums[i] = static_cast<uint8_t>(min(sum, kSums - 1));
}

__global__ void SampleKernel(const uint8_t* codes, int64_t n, int64_t num_rows,
                             const uint32_t* parts_and_distances, int64_t num_parts, int64_t size,
                             uint8_t* sample) {
  constexpr int64_t kBytesOfPart = int64_t{kSampledRows} * kLanes;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= size) return;
  const int64_t k = i / (num_parts * kBytesOfPart);  // 0: no distance
  const int64_t part = i / kBytesOfPart % num_parts;
  const int64_t distance = k == 0 ? 0 : parts_and_distances[num_parts + k - 1];
  const int64_t j = parts_and_distances[part] + i % kBytesOfPart / kLanes - distance;
  const int64_t at = i % kLanes * num_rows + j;
  sample[i] = j >= 0 && at < n ? codes[at] : 0;
}

}  // namespace

Error SubmitToRows(cudaStream_t stream, const uint8_t* bytes, int64_t n, uint8_t* rows) {
  const int64_t num_rows = RowsOf(n);
  return Launch(stream, BlocksFor(num_rows, kRowsOfTile), dim3(kThreads), ToRowsKernel, bytes, n,
                num_rows, rows);
}

Error SubmitFromRows(cudaStream_t stream, const uint8_t* rows, int64_t n, uint8_t* bytes) {
  const int64_t num_rows = RowsOf(n);
  return Launch(stream, BlocksFor(num_rows, kRowsOfTile), dim3(kThreads), FromRowsKernel, rows, n,
                num_rows, bytes);
}

Error SubmitSumsOfNeighbours(cudaStream_t stream, const Neighbours& neighbours, const uint8_t* rows,
                             int64_t num_rows, uint8_t* sums) {
  const int64_t size = num_rows * kLanes;
  return Launch(stream, BlocksFor(size, kThreads), dim3(kThreads), SumsKernel, neighbours, rows,
                size, sums);
}

Error SubmitSample(cudaStream_t stream, const uint8_t* codes, int64_t n,
                   const uint32_t* parts_and_distances, int64_t num_parts, int64_t num_distances,
                   uint8_t* sample) {
  const int64_t size = (1 + num_distances) * num_parts * int64_t{kSampledRows} * kLanes;
  return Launch(stream, BlocksFor(size, kThreads), dim3(kThreads), SampleKernel, codes, n,
                RowsOf(n), parts_and_distances, num_parts, size, sample);
}

}  // namespace thinwire
