#include <algorithm>

#include "nn/cuda/kernels.h"
#include "nn/cuda/parameter_update.cuh"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire::cuda {
namespace {

constexpr int64_t kBlockElements = 8192;  // elements of one range that one block adds up
constexpr int kMostRanges = 128;          // ranges of one launch

struct Ranges {
  const float* values[kMostRanges];
  int64_t n[kMostRanges];
  int64_t first_block[kMostRanges + 1];
  int count;
};
static_assert(sizeof(Ranges) <= 4096 - 64, "does not fit a launch");

__global__ void SumBlocks(Ranges a, double* of_blocks) {
  const int64_t block = blockIdx.x;
  const int range = ParameterOf(a.first_block, a.count, block);
  const int64_t begin = (block - a.first_block[range]) * kBlockElements;
  const int64_t end = min(a.n[range], begin + kBlockElements);
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const double value = static_cast<double>(a.values[range][i]);
    sum += value * value;
  }
  sum = BlockReduce<Sum>(sum);
  if (threadIdx.x == 0) of_blocks[block] = sum;
}

// Adds up the blocks' sums, with one block for each range.
__global__ void AddUpBlocks(Ranges a, const double* of_blocks, double* sums) {
  const int range = static_cast<int>(blockIdx.x);
  double sum = 0;
  for (int64_t i = a.first_block[range] + threadIdx.x; i < a.first_block[range + 1];
       i += kThreads) {
    sum += of_blocks[i];
  }
  sum = BlockReduce<Sum>(sum);
  if (threadIdx.x == 0) sums[range] = sum;
}

// Submits the sums of at most kMostRanges ranges, to device memory.
Error SubmitSums(CudaDevice* device, const FloatRange* ranges, int count, double* sums) {
  Ranges a{};
  a.count = count;
  for (int i = 0; i < count; ++i) {
    a.values[i] = ranges[i].values;
    a.n[i] = ranges[i].n;
    a.first_block[i + 1] = a.first_block[i] + (ranges[i].n + kBlockElements - 1) / kBlockElements;
  }
  const int64_t blocks = a.first_block[count];
  CudaScratch of_blocks(device);
  RETURN_ERROR(of_blocks.Reserve(static_cast<size_t>(blocks) * sizeof(double)));
  RETURN_ERROR(
      Launch(device, BlocksWith(1, blocks), dim3(kThreads), SumBlocks, a, of_blocks.as<double>()));
  return Launch(device, BlocksWith(1, count), dim3(kThreads), AddUpBlocks, a,
                of_blocks.as<double>(), sums);
}

// Submits the sums of any number of ranges.
Error SubmitAllSums(CudaDevice* device, const FloatRange* ranges, int64_t count, double* sums) {
  for (int64_t begin = 0; begin < count; begin += kMostRanges) {
    const int64_t most = std::min<int64_t>(count - begin, kMostRanges);
    RETURN_ERROR(SubmitSums(device, ranges + begin, static_cast<int>(most), sums + begin));
  }
  return Error{};
}

// Computes the factor of nn/clip_scale.h. Launched as one warp, of which one thread adds in order.
__global__ void MakeFactor(const double* sums, int64_t count, double clip_norm, float* factor) {
  if (threadIdx.x != 0) return;
  double sum = 0;
#pragma unroll 16  // lets as many loads overlap
  for (int64_t i = 0; i < count; ++i) sum += sums[i];
  const double scale = clip_norm / (sqrt(sum) + 1e-6);
  *factor = isfinite(sum) ? static_cast<float>(scale < 1 ? scale : 1.0) : nanf("");
}

}  // namespace

Error Kernels::SumsOfSquares(const FloatRange* ranges, int64_t count, double* sums) {
  if (count == 0) return Error{};
  const size_t bytes = static_cast<size_t>(count) * sizeof(double);
  CudaScratch on_device(device_);
  RETURN_ERROR(on_device.Reserve(bytes));
  RETURN_ERROR(SubmitAllSums(device_, ranges, count, on_device.as<double>()));
  return device_->CopyToHost(sums, on_device.as<double>(), bytes);
}

Error Kernels::ClipByNorm(const NormClip& a) {
  const size_t bytes = static_cast<size_t>(a.count) * sizeof(double);
  CudaScratch on_device(device_);
  RETURN_ERROR(on_device.Reserve(bytes));
  auto* const sums = on_device.as<double>();
  RETURN_ERROR(SubmitAllSums(device_, a.ranges, a.count, sums));
  RETURN_ERROR(Launch(device_, dim3(1), dim3(kWarpThreads), MakeFactor, sums, a.count, a.clip_norm,
                      a.factor));
  return device_->SubmitCopyToHost(a.sums, sums, bytes);
}

}  // namespace thinwire::cuda
