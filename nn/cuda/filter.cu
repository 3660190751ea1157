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

__global__ void AddPacked(FilterShape shape, const float* packed, float* gradient) {
  const int64_t pairs = shape.out * shape.in;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  int64_t pair = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; pair < pairs; pair += step) {
    const int64_t out = pair / shape.in, in = pair - out * shape.in;
    const float* const from = packed + out * shape.pixels * shape.in + in;
    float* const to = gradient + pair * shape.pixels;
    for (int64_t p = 0; p < shape.pixels; ++p) to[p] += from[p * shape.in];
  }
}

dim3 Blocks(const FilterShape& shape) { return BlocksFor(shape.out * shape.in, kThreads); }

}  // namespace

Error PackFilter(CudaDevice* device, const FilterShape& shape, const float* weights, DType type,
                 void* packed) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  if (type == DType::kF32) {
    return Launch(stream, Blocks(shape), dim3(kThreads), Pack<float>, shape, weights,
                  static_cast<float*>(packed));
  }
  return Launch(stream, Blocks(shape), dim3(kThreads), Pack<uint16_t>, shape, weights,
                static_cast<uint16_t*>(packed));
}

Error AddPackedGradient(CudaDevice* device, const FilterShape& shape, const float* packed,
                        float* gradient) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  return Launch(stream, Blocks(shape), dim3(kThreads), AddPacked, shape, packed, gradient);
}

}  // namespace thinwire::cuda
