#include "nn/cuda/elementwise.h"
#include "nn/cuda/filter.h"
#include "nn/cuda/vectors.cuh"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire::cuda {
namespace {

// A thread has all pixels of one (out, in): side by side in [out, in, pixels], so that a warp's
// accesses there, though strided, use every byte of their lines; side by side among threads in
// [out, pixels, in].
template <typename T>
__global__ void Pack(FilterShape shape, const float* weights, T* packed) {
  const int64_t pairs = shape.out * shape.in;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  int64_t pair = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; pair < pairs; pair += step) {
    const int64_t out = pair / shape.in, in = pair - out * shape.in;
    const float* const from = weights + pair * shape.pixels;
    T* const to = packed + out * shape.pixels * shape.in + in;
    for (int64_t p = 0; p < shape.pixels; ++p) Store(from[p], to + p * shape.in);
  }
}

// The part of one output channel's filter that a block turns around in shared memory.
constexpr int kChannels = 256, kPixels = 16;
constexpr int kAtOnce = 9;  // loads of a thread under way, between which its stores must not be

struct Parts {
  int64_t of_channels, of_pixels;

  explicit Parts(const FilterShape& shape)
      : of_channels((shape.in + kChannels - 1) / kChannels),
        of_pixels((shape.pixels + kPixels - 1) / kPixels) {}
};

// Neighbouring threads read neighbours in `packed`, then add to neighbours in `gradient`.
template <typename T>
__global__ void AddPacked(FilterShape shape, Parts parts, const T* packed, float* gradient) {
  __shared__ float part[kPixels][kChannels + 4];  // + 4: few of 3 x 3 pixels share a bank
  const int64_t out = blockIdx.x / (parts.of_channels * parts.of_pixels);
  const int64_t in = blockIdx.x / parts.of_pixels % parts.of_channels * kChannels;
  const int64_t pixel = blockIdx.x % parts.of_pixels * kPixels;
  const int channels = static_cast<int>(shape.in - in < kChannels ? shape.in - in : kChannels);
  const int pixels =
      static_cast<int>(shape.pixels - pixel < kPixels ? shape.pixels - pixel : kPixels);
  const T* const from = packed + (out * shape.pixels + pixel) * shape.in + in;
  float* const to = gradient + (out * shape.in + in) * shape.pixels + pixel;
  const int thread = static_cast<int>(threadIdx.x), count = channels * pixels;
  const auto transposed = [&](int i) { return i / pixels * shape.pixels + i % pixels; };
  float before[kAtOnce];
  const auto load = [&](int first) {
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kThreads;
      before[j] = i < count ? to[transposed(i)] : 0;
    }
  };
  load(thread);  // under way together with what is turned around
  for (int i = thread; i < count; i += kThreads) {
    part[i / channels][i % channels] = Load(from + i / channels * shape.in + i % channels);
  }
  __syncthreads();
  for (int first = thread; first < count; first += kAtOnce * kThreads) {
    if (first != thread) load(first);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kThreads;
      if (i < count) to[transposed(i)] = before[j] + part[i % pixels][i / pixels];
    }
  }
}

dim3 Blocks(const FilterShape& shape) { return BlocksFor(shape.out * shape.in, kThreads); }

}  // namespace

Error PackFilter(CudaDevice* device, const FilterShape& shape, const float* weights, DType type,
                 void* packed) {
  if (shape.pixels == 1) return Narrow(device, weights, shape.elements(), type, packed);
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  if (type == DType::kF32) {
    return Launch(stream, Blocks(shape), dim3(kThreads), Pack<float>, shape, weights,
                  static_cast<float*>(packed));
  }
  return Launch(stream, Blocks(shape), dim3(kThreads), Pack<uint16_t>, shape, weights,
                static_cast<uint16_t*>(packed));
}

Error AddPackedGradient(CudaDevice* device, const FilterShape& shape, const void* packed,
                        DType type, float* gradient) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  const Parts parts(shape);
  const dim3 blocks = BlocksWith(1, shape.out * parts.of_channels * parts.of_pixels);
  if (type == DType::kF32) {
    return Launch(stream, blocks, dim3(kThreads), AddPacked<float>, shape, parts,
                  static_cast<const float*>(packed), gradient);
  }
  return Launch(stream, blocks, dim3(kThreads), AddPacked<uint16_t>, shape, parts,
                static_cast<const uint16_t*>(packed), gradient);
}

}  // namespace thinwire::cuda
