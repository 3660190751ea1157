// Histograms of bytes for each sum of their neighbours, from which the entropy coder's tables are
// made.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

// Adds 1 to counts[sums[i]][bytes[i]] for n bytes, to counts[0] if `sums` is null. `counts` has
// kSums (or one) times kSymbols counts of 32 bits. All are in device memory.
Error SubmitByteCounts(cudaStream_t stream, const uint8_t* bytes, const uint8_t* sums, int64_t n,
                       uint32_t* counts);

}  // namespace thinwire
