// Where each part begins, when every part has some: prefix sums over an array in device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

// sums[i] becomes the sum of those before it, and sums[n], which need not be set, that of all n.
// One block: for arrays with an entry per tile of a tensor, not per element.
Error SubmitPrefixSums(cudaStream_t stream, uint64_t* sums, int64_t n);

}  // namespace thinwire
