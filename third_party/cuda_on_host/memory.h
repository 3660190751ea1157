// Keeps a record of the memory that was handed out, so that calls can check pointers.
#pragma once

#include <cstddef>

#include "third_party/cuda_on_host/runtime_api.h"

namespace cuda_on_host {

size_t DeviceMemoryBytes();

// Returns the type of the one block in which all of [begin, begin + bytes] lies and that nobody has
// freed. Returns cudaMemoryTypeUnregistered if there is none.
cudaMemoryType TypeOf(const void* begin, size_t bytes);

}  // namespace cuda_on_host
