#include "compress/cuda/key_copies.h"
#include "compress/cuda/keys.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int kSide = 32;                  // side of the square that a block transposes
constexpr int kAtOnce = kThreads / kSide;  // rows of it that are moved at a time

// Transposes squares through shared memory, so that loads and stores are coalesced; the odd stride
// avoids bank conflicts. Elements are moved as their bits, so that a NaN stays as it is.
template <typename T>
__global__ void TransposeKernel(const T* from, const uint32_t* support, int64_t rows,
                                int64_t channels, int64_t squares_across, T* to) {
  __shared__ T square[kSide][kSide + 1];
  const int64_t first_row = blockIdx.x / squares_across * kSide;
  const int64_t first_channel = blockIdx.x % squares_across * kSide;
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  for (int j = y; j < kSide; j += kAtOnce) {
    const int64_t row = first_row + j, channel = first_channel + x;
    if (row >= rows || channel >= channels) continue;
    const int64_t i = row * channels + channel;
    square[j][x] = support == nullptr || IsSet(support, i) ? from[i] : T{0};
  }
  __syncthreads();
  for (int j = y; j < kSide; j += kAtOnce) {
    const int64_t row = first_row + x, channel = first_channel + j;
    if (row < rows && channel < channels) to[channel * rows + row] = square[x][j];
  }
}

// Transposes bits, a warp per square of 32 by 32: lane c reads 32 rows of one channel and, after 32
// votes, has 32 channels of one row.
__global__ void TransposeBitsKernel(const uint32_t* from, int64_t rows, int64_t channels,
                                    int64_t squares_across, int64_t squares, uint32_t* to) {
  const int64_t square = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / 32;
  if (square >= squares) return;  // whole warps
  const unsigned lane = threadIdx.x % 32;
  const int64_t first_row = square / squares_across * kSide;
  const int64_t first_channel = square % squares_across * kSide;
  const int64_t channel = first_channel + lane;
  uint32_t column = 0;
  if (channel < channels) {
    const int64_t begin = channel * rows + first_row, end = (channel + 1) * rows;
    column = BitsFrom(from, begin, end);
  }
  uint32_t own = 0;
  // Transposes 32 x 32 bits: a vote on bit j of every lane's column is row j, which lane j keeps.
  for (unsigned j = 0; j < kSide; ++j) {
    const uint32_t row = __ballot_sync(kWholeWarp, (column >> j) & 1);
    if (lane == j) own = row;
  }
  if (first_row + lane >= rows) return;
  if (own == 0) return;
  const int64_t bit = (first_row + lane) * channels + first_channel;
  const int shift = static_cast<int>(bit % 32);
  atomicOr(&to[bit / 32], own << shift);
  if (shift > 0 && own >> (32 - shift) != 0) atomicOr(&to[bit / 32 + 1], own >> (32 - shift));
}

__global__ void DrawKernel(uint64_t seed, int64_t fours, uint4* draws) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= fours) return;
  uint32_t four[4];
  DrawFour(seed, 4 * i, four);
  uint4 stored;
  stored.x = four[0], stored.y = four[1], stored.z = four[2], stored.w = four[3];
  draws[i] = stored;
}

int64_t SquaresOf(int64_t side) { return (side + kSide - 1) / kSide; }

}  // namespace

Error SubmitTranspose(CudaDevice* device, const Keys& keys, int64_t channels, void* to) {
  const int64_t rows = keys.total / channels, across = SquaresOf(channels);
  const dim3 blocks = BlocksFor(SquaresOf(rows) * across, 1, INT32_MAX);
  if (keys.dtype == DType::kF32) {
    return Launch(device, blocks, dim3(kThreads), TransposeKernel<uint32_t>, keys.data,
                  keys.support, rows, channels, across, to);
  }
  return Launch(device, blocks, dim3(kThreads), TransposeKernel<uint16_t>, keys.data, keys.support,
                rows, channels, across, to);
}

Error SubmitTransposeBits(CudaDevice* device, const uint32_t* from, int64_t rows, int64_t channels,
                          uint32_t* to) {
  const int64_t across = SquaresOf(channels), squares = SquaresOf(rows) * across;
  return Launch(device, BlocksFor(squares, kThreads / 32), dim3(kThreads), TransposeBitsKernel,
                from, rows, channels, across, squares, to);
}

Error SubmitDraws(CudaDevice* device, uint64_t seed, int64_t n, void* draws) {
  const int64_t fours = (n + 3) / 4;
  return Launch(device, BlocksFor(fours, kThreads), dim3(kThreads), DrawKernel, seed, fours, draws);
}

}  // namespace thinwire
