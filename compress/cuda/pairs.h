// Small codes two to a byte (compress/entropy/pairs.h), in device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

// *large is so many of the n codes that compress/entropy/pairs_layout.h says to look at before all
// are.
Error SubmitLargeLooks(cudaStream_t stream, const uint8_t* codes, int64_t n, uint32_t* large);

// Makes pairs of n codes; pairs[i] is 0 behind the last one, up to `size`, a multiple of 8, as the
// address is. Large codes go elsewhere: adds how many they are to *num_large.
Error SubmitToPairs(cudaStream_t stream, const uint8_t* codes, int64_t n, uint8_t* pairs,
                    int64_t size, uint32_t* num_large);

// The inverse. Sets *fault to 1 if the large codes are not `num_large`, or one is not large.
// `pairs` is aligned to 4 bytes. `offsets`: memory of LargeOffsetsBytes(n) (large_bytes.h).
Error SubmitFromPairs(cudaStream_t stream, const uint8_t* pairs, int64_t n, const uint8_t* large,
                      int64_t num_large, uint64_t* offsets, uint8_t* codes, uint32_t* fault);

}  // namespace thinwire
