// Codecs none, fp16 and bf16: every element in another type.
#pragma once

#include <cstdint>

#include "compress/cuda/codecs.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

CudaEncode CudaCastEncode;
CudaDecode CudaCastDecode;

// See CodecKernels::CastTo and CastFrom.
Error CudaCastTo(CudaDevice* device, DType wire, const TensorView& x, const PayloadTarget& payload);
Error CudaCastFrom(CudaDevice* device, const PayloadSource& payload, DType wire,
                   const TensorView& x);

// Encode and decode within device memory; they only launch kernels. `body` is what follows the
// header, aligned to 16 bytes. *exponent is fp16's; it is null for other types.
Error SubmitCastEncode(CudaDevice* device, const TensorView& x, DType to, int16_t* exponent,
                       uint8_t* body);
Error SubmitCastDecode(CudaDevice* device, const uint8_t* body, DType from, int exponent,
                       const TensorView& x);

}  // namespace thinwire
