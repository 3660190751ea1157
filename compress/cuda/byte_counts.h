// How often each byte is there, for each sum of its neighbours: what the entropy coder's tables are
// made of.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

// counts[sums[i]][bytes[i]] += 1 for n bytes, counts[0] where `sums` is null: kSums, or one, times
// kSymbols counts of 32 bits. All in device memory.
Error SubmitByteCounts(cudaStream_t stream, const uint8_t* bytes, const uint8_t* sums, int64_t n,
                       uint32_t* counts);

}  // namespace thinwire
