// Keeps a record of the memory that was handed out, so that calls can check pointers.
#pragma once

#include <cstddef>

#include "third_party/cuda_on_host/runtime_api.h"

namespace cuda_on_host {

size_t DeviceMemoryBytes();

// Returns the type of the one block in which all of [begin, begin + bytes] lies and that nobody has
// freed. Returns cudaMemoryTypeUnregistered if there is none.
cudaMemoryType TypeOf(const void* begin, size_t bytes);

// Returns the bytes of the block of NewPages that begins there; 0 if there is none.
size_t BytesOfPages(void* begin);
// Record memory of another process as the current device's, and forget it.
void RecordOpened(void* memory, size_t bytes);
void ForgetOpened(void* memory);

}  // namespace cuda_on_host
