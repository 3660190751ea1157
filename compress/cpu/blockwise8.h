// blockwise8: absmax per block and a code per element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::Blockwise8Encode and Blockwise8Decode.
Error CpuBlockwise8Encode(const TensorView& x, uint32_t block, uint8_t* payload, size_t capacity,
                          size_t* bytes, int threads);
Error CpuBlockwise8Decode(const uint8_t* payload, size_t bytes, uint32_t block, const TensorView& x,
                          int threads);

}  // namespace thinwire
