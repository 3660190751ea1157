// Counts of the set bits of each scope.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/entry_list.h"
#include "compress/layout.h"
#include "tensor/error.h"

namespace thinwire {

// Sets counts[s], in device memory, to the number of set bits of scope s in a bitmap over
// scopes.total elements.
Error SubmitScopeCounts(cudaStream_t stream, const RankedBits& bits, const Scopes& scopes,
                        uint32_t* counts);

// Sets *fault, in device memory, to 1 if one of counts[0, n) is above `most`.
Error SubmitMostCheck(cudaStream_t stream, const uint32_t* counts, int64_t n, int64_t most,
                      uint32_t* fault);

}  // namespace thinwire
