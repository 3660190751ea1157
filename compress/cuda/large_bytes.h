// Lists of the bytes of a string that are at least some value, in order: codes that do not fit
// where most codes do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/cuda/device.h"

namespace thinwire {

// Returns the number of tiles of n bytes.
int64_t NumLargeTiles(int64_t n);
// Returns the memory for `offsets`: where in the list each tile begins, and the list's length.
size_t LargeOffsetsBytes(int64_t n);

// Writes the offsets for the bytes that are at least `least`.
Error SubmitLargeOffsets(CudaDevice* device, const uint8_t* bytes, int64_t n, uint8_t least,
                         uint64_t* offsets);
// Lists these bytes' values and places. `values` or `places` may be null.
Error SubmitLargeList(CudaDevice* device, const uint8_t* bytes, int64_t n, uint8_t least,
                      const uint64_t* offsets, uint8_t* values, int64_t* places);

}  // namespace thinwire
