// Random draws for the elements of a tensor, in device memory (docs/compression.md, randomk).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

inline size_t DrawsBytes(int64_t n) { return 16 * static_cast<size_t>((n + 3) / 4); }

// Overwrites `draws`, DrawsBytes(n) bytes, with the draws of Keys without data (keys.h), as bits of
// floats.
Error SubmitDraws(cudaStream_t stream, uint64_t seed, int64_t n, void* draws);

}  // namespace thinwire
