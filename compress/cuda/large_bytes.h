// Lists of the bytes from some value on, in their order: codes that do not fit where most do.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

// Of n bytes.
int64_t NumLargeTiles(int64_t n);
// Memory for where in the list each tile begins, and for the list's length behind.
size_t LargeOffsetsBytes(int64_t n);

// Of the bytes from `least` on.
Error SubmitLargeOffsets(cudaStream_t stream, const uint8_t* bytes, int64_t n, uint8_t least,
                         uint64_t* offsets);
// Their values and their places, each unless null.
Error SubmitLargeList(cudaStream_t stream, const uint8_t* bytes, int64_t n, uint8_t least,
                      const uint64_t* offsets, uint8_t* values, int64_t* places);

}  // namespace thinwire
