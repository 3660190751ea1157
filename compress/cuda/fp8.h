// Codec fp8: every element as an 8-bit float of the tensor times a power of two.
#pragma once

#include <cstdint>

#include "compress/cuda/codecs.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

CudaEncode CudaFp8Encode;
CudaDecode CudaFp8Decode;

// Encode and decode within device memory; they only launch kernels. `codes` are aligned to 4 bytes.
// The encoder sets *largest to the bits of the largest magnitude; the caller refuses kInfinityBits
// and more. The decoder sets it to the largest code without its sign, if that exceeds
// LargestFp8Code.
Error SubmitFp8Encode(CudaDevice* device, const TensorView& x, Fp8Format format, int16_t* exponent,
                      uint8_t* codes, uint32_t* largest);
Error SubmitFp8Decode(CudaDevice* device, const uint8_t* codes, int exponent, Fp8Format format,
                      const TensorView& x, uint32_t* largest);

}  // namespace thinwire
