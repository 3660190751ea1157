// Launches kernels by ordinary calls, so that one source compiles for a device and for the emulator
// (third_party/cuda_on_host). tensor/cuda/README.md has the rules for kernels that run on both.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <tuple>
#include <utility>

#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"
#include "tensor/tensor.h"

namespace thinwire {
namespace launch_internal {

// Collects pointers to the arguments, as cudaLaunchKernel wants them.
template <typename... P, size_t... I>
cudaError_t Launch(cudaStream_t stream, dim3 grid, dim3 block, void (*kernel)(P...),
                   std::tuple<P...>& arguments, std::index_sequence<I...>) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&std::get<I>(arguments)))...,
                      nullptr};
  return cudaLaunchKernel(kernel, grid, block, pointers, /*sharedMem=*/0, stream);
}

}  // namespace launch_internal

// Does kernel<<<grid, block, 0, stream>>>(arguments...). An empty grid launches nothing.
template <typename... P, typename... A>
Error Launch(cudaStream_t stream, dim3 grid, dim3 block, void (*kernel)(P...), A&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Error{};
  std::tuple<P...> values(static_cast<P>(std::forward<A>(arguments))...);
  return CudaError(
      launch_internal::Launch(stream, grid, block, kernel, values, std::index_sequence_for<P...>()),
      "kernel launch");
}

// Does the same on the calling thread's stream of a device.
template <typename... P, typename... A>
Error Launch(CudaDevice* device, dim3 grid, dim3 block, void (*kernel)(P...), A&&... arguments) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  return Launch(stream, grid, block, kernel, std::forward<A>(arguments)...);
}

// Returns the blocks of `threads` threads that cover n elements, at most `most` (kernels then
// stride over the rest).
inline dim3 BlocksFor(int64_t n, int64_t threads, int64_t most = 1 << 30) {
  const int64_t blocks = (n + threads - 1) / threads;
  return dim3(static_cast<unsigned>(blocks < most ? blocks : most));
}

// Calls call(data) with a tensor's memory in the type that kernels take: float or, for bf16,
// uint16_t.
template <typename Call>
Error WithTypedData(const TensorView& x, const Call& call) {
  if (x.dtype == DType::kF32) return call(static_cast<float*>(x.data));
  return call(static_cast<uint16_t*>(x.data));
}

}  // namespace thinwire
