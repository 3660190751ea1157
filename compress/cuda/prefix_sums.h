// Prefix sums over an array in device memory: they say where each part's output begins, if every
// part has some.
#pragma once

#include <cstdint>

#include "tensor/cuda/device.h"

namespace thinwire {

// Replaces sums[i] by the sum of the entries before it, and sets sums[n] to the sum of all n. One
// block does it: for arrays with an entry per tile of a tensor, not per element.
Error SubmitPrefixSums(CudaDevice* device, uint64_t* sums, int64_t n);

}  // namespace thinwire
