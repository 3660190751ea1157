// fp8: every element as an 8-bit float of the tensor times a power of two.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/spec.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::Fp8Encode and Fp8Decode.
Error CpuFp8Encode(const TensorView& x, Fp8Format format, uint8_t* payload, size_t capacity,
                   size_t* bytes, int threads);
Error CpuFp8Decode(const uint8_t* payload, size_t bytes, Fp8Format format, const TensorView& x,
                   int threads);

}  // namespace thinwire
