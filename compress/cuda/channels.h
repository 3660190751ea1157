// Transposition of strided scopes (channels) to scopes one after the other, and back.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/keys.h"
#include "tensor/error.h"

namespace thinwire {

// Sets to[c * rows + r] = keys.data[r * channels + c], or zero where that has no support. Both have
// type keys.dtype. Requires rows * channels = keys.total.
Error SubmitTranspose(cudaStream_t stream, const Keys& keys, int64_t channels, void* to);

// Sets bit r * channels + c of `to`, a bitmap of zeros, where bit c * rows + r of `from` is set.
Error SubmitTransposeBits(cudaStream_t stream, const uint32_t* from, int64_t rows, int64_t channels,
                          uint32_t* to);

}  // namespace thinwire
