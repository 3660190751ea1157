// none, fp16 and bf16: every element in another type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::CastEncode and CastDecode.
Error CpuCastEncode(const TensorView& x, DType to, uint8_t* payload, size_t capacity, size_t* bytes,
                    int threads);
Error CpuCastDecode(const uint8_t* payload, size_t bytes, DType from, const TensorView& x,
                    int threads);

}  // namespace thinwire
