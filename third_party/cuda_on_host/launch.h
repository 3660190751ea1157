// Launches kernels.
#pragma once

#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "third_party/cuda_on_host/runtime_api.h"

namespace cuda_on_host {

// Submits a kernel. `thread` is the kernel with its arguments, as one thread of a block runs it.
cudaError_t SubmitKernel(dim3 grid, dim3 block, std::function<void()> thread, size_t shared_bytes,
                         cudaStream_t stream);

// True for a kernel's argument that points to memory which a device cannot read. Null and a pointer
// one past the end are fine.
bool IsForeignPointer(const void* pointer);

template <typename T>
bool IsForeign(const T& argument) {
  if constexpr (std::is_pointer_v<T>) {
    return IsForeignPointer(reinterpret_cast<const void*>(argument));
  } else {
    return false;
  }
}
cudaError_t RefuseArgument(int index);

template <typename... P, size_t... I>
cudaError_t LaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                         size_t shared_bytes, cudaStream_t stream, std::index_sequence<I...>) {
  const std::tuple<P...> values(*static_cast<P*>(arguments[I])...);
  int foreign = -1;
  (void)((IsForeign(std::get<I>(values)) && (foreign = static_cast<int>(I), true)) || ...);
  if (foreign >= 0) return RefuseArgument(foreign);
  return SubmitKernel(
      grid, block, [kernel, values] { std::apply(kernel, values); }, shared_bytes, stream);
}

}  // namespace cuda_on_host

// Launches `kernel`. `arguments` point to its arguments, which are copied.
template <typename... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return cuda_on_host::LaunchKernel(kernel, grid, block, arguments, shared_bytes, stream,
                                    std::index_sequence_for<P...>());
}
