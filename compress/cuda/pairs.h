// Pairing of small codes, two to a byte (compress/entropy/pairs.h), in device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

// Samples the n codes as compress/entropy/pairs_layout.h says, and sets *large to the number of
// large ones among them.
Error SubmitLargeLooks(cudaStream_t stream, const uint8_t* codes, int64_t n, uint32_t* large);

// Makes pairs of n codes. Bytes behind the last pair, up to `size`, are 0; `size` and the address
// are multiples of 8. The large codes are not written, but counted: 1 is added to large[c] for each
// that is c. `large` has kSymbols counts of 32 bits.
Error SubmitToPairs(cudaStream_t stream, const uint8_t* codes, int64_t n, uint8_t* pairs,
                    int64_t size, uint32_t* large);

// Inverts this. Sets *fault to 1 if there are not `num_large` large codes, or one is not large;
// `codes` then mean nothing. `pairs` is aligned to 4 bytes. `offsets` is memory of
// PairOffsetsBytes(n).
size_t PairOffsetsBytes(int64_t n);
Error SubmitFromPairs(cudaStream_t stream, const uint8_t* pairs, int64_t n, const uint8_t* large,
                      int64_t num_large, uint64_t* offsets, uint8_t* codes, uint32_t* fault);

}  // namespace thinwire
