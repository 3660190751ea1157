#include "compress/cuda/kernels.h"
#include "compress/refusals.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire {
namespace {

using Sums = CodecKernels::Sums;

constexpr unsigned kThreads = 256, kThreadsOfTotal = 512;
constexpr int kVector = 4, kVectors = 16;  // elements of a thread: kVectors times kVector
constexpr int64_t kTile = int64_t{kThreads} * kVector * kVectors;

// Sums of one thread; an aggregate, so that a kernel may keep it in registers.
struct Share {
  double difference, x, y, product;
  int64_t nonzeros_x, nonzeros_y;
};

// Adds up the block's sums; its first thread writes them.
__device__ void AddUp(const Share& share, Share* to) {
  Share sum;
  sum.difference = BlockReduce<Sum>(share.difference);
  sum.x = BlockReduce<Sum>(share.x);
  sum.y = BlockReduce<Sum>(share.y);
  sum.product = BlockReduce<Sum>(share.product);
  sum.nonzeros_x = BlockReduce<Sum>(share.nonzeros_x);
  sum.nonzeros_y = BlockReduce<Sum>(share.nonzeros_y);
  if (threadIdx.x == 0) *to = sum;
}

// Compares tiles, one per block. Elements behind the last read as zeros, which add nothing.
template <typename X, typename Y>
__global__ void CompareKernel(const X* x, const Y* y, int64_t total, Share* of_tiles) {
  Share share = {};
  for (int v = 0; v < kVectors; ++v) {
    const int64_t i = blockIdx.x * kTile + (int64_t{v} * kThreads + threadIdx.x) * kVector;
    if (i >= total) break;
    float of_x[kVector], of_y[kVector];
    LoadVector<kVector>(x + i, total - i, of_x);
    LoadVector<kVector>(y + i, total - i, of_y);
    for (int k = 0; k < kVector; ++k) {
      const double a = of_x[k], b = of_y[k], d = a - b;
      share.difference += d * d;
      share.x += a * a;
      share.y += b * b;
      share.product += a * b;
      share.nonzeros_x += a != 0;
      share.nonzeros_y += b != 0;
    }
  }
  AddUp(share, of_tiles + blockIdx.x);
}

// Adds up the sums of all tiles, with one block.
__global__ void __launch_bounds__(kThreadsOfTotal)
    TotalKernel(const Share* of_tiles, int64_t tiles, Share* total) {
  Share share = {};
  for (int64_t i = threadIdx.x; i < tiles; i += blockDim.x) {
    const Share tile = of_tiles[i];
    share.difference += tile.difference;
    share.x += tile.x;
    share.y += tile.y;
    share.product += tile.product;
    share.nonzeros_x += tile.nonzeros_x;
    share.nonzeros_y += tile.nonzeros_y;
  }
  AddUp(share, total);
}

template <typename X, typename Y>
Error LaunchCompare(CudaDevice* device, const X* x, const Y* y, int64_t total, int64_t tiles,
                    Share* of_tiles) {
  return Launch(device, dim3(static_cast<unsigned>(tiles)), dim3(kThreads), CompareKernel<X, Y>, x,
                y, total, of_tiles);
}

}  // namespace

Error CudaKernels::Compare(const TensorView& x, const TensorView& y, Sums* sums) {
  RETURN_ERROR(CheckCompared(x.elements(), y.elements()));
  const int64_t tiles = (x.elements() + kTile - 1) / kTile;
  CudaScratch shares(device_);  // sums of the tiles, then the total
  RETURN_ERROR(shares.Reserve((tiles + 1) * sizeof(Share)));
  Share* const of_tiles = shares.as<Share>();
  RETURN_ERROR(WithTypedData(x, [&](const auto* of_x) {
    return WithTypedData(y, [&](const auto* of_y) {
      return LaunchCompare(device_, of_x, of_y, x.elements(), tiles, of_tiles);
    });
  }));
  RETURN_ERROR(Launch(device_, dim3(1), dim3(kThreadsOfTotal), TotalKernel, of_tiles, tiles,
                      of_tiles + tiles));
  Share total;
  RETURN_ERROR(device_->CopyToHost(&total, of_tiles + tiles, sizeof(total)));
  *sums = {total.difference, total.x, total.y, total.product, total.nonzeros_x, total.nonzeros_y};
  return Error{};
}

}  // namespace thinwire
