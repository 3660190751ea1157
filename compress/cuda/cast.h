// none, fp16 and bf16: every element in another type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::CastEncode and CastDecode.
Error CudaCastEncode(CudaDevice* device, const TensorView& x, DType to, uint8_t* payload,
                     size_t capacity, size_t* bytes);
Error CudaCastDecode(CudaDevice* device, const uint8_t* payload, size_t bytes, DType from,
                     const TensorView& x);

// The same within device memory; launches only. `body` is what follows the header, aligned to 16
// bytes; *exponent is fp16's, null for other types.
Error SubmitCastEncode(CudaDevice* device, const TensorView& x, DType to, int16_t* exponent,
                       uint8_t* body);
Error SubmitCastDecode(CudaDevice* device, const uint8_t* body, DType from, int exponent,
                       const TensorView& x);

}  // namespace thinwire
