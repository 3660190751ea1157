// Copies of keys in device memory: random draws, and strided scopes (channels) as scopes one after
// the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cuda/keys.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Sets to[c * rows + r] = keys.data[r * channels + c], or zero where that has no support. Both have
// type keys.dtype. Requires rows * channels = keys.total.
Error SubmitTranspose(CudaDevice* device, const Keys& keys, int64_t channels, void* to);

// Sets bit r * channels + c of `to`, a bitmap of zeros, where bit c * rows + r of `from` is set.
Error SubmitTransposeBits(CudaDevice* device, const uint32_t* from, int64_t rows, int64_t channels,
                          uint32_t* to);

inline size_t DrawsBytes(int64_t n) { return 16 * static_cast<size_t>((n + 3) / 4); }

// Overwrites `draws`, DrawsBytes(n) bytes, with the draws of Keys without data (keys.h), as bits of
// floats.
Error SubmitDraws(CudaDevice* device, uint64_t seed, int64_t n, void* draws);

}  // namespace thinwire
