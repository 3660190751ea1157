// Memory that was handed out, so that calls can check pointers.
#pragma once

#include <cstddef>

#include "third_party/cuda_on_host/runtime_api.h"

namespace cuda_on_host {

size_t DeviceMemoryBytes();

// cudaMemoryTypeUnregistered unless all of [begin, begin + bytes] lies in one block that
// nobody has freed.
cudaMemoryType TypeOf(const void* begin, size_t bytes);

}  // namespace cuda_on_host
