// Codec blockwise8: an absmax per block and a code per element.
#pragma once

#include <cstdint>

#include "compress/cuda/codecs.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

CudaEncode CudaBlockwise8Encode;
CudaDecode CudaBlockwise8Decode;

// Encode and decode within device memory, for tensors that are not empty; they only launch kernels.
// The codes lie at a multiple of 4 bytes, with memory up to the next one behind them. *nonfinite
// becomes 1 if x holds NaN or infinity and 0 otherwise. *refused becomes the complement of the
// first block whose absmax is refused, 0 if there is none.
Error SubmitBlockwise8Encode(CudaDevice* device, const TensorView& x, uint32_t block,
                             uint8_t* payload, uint32_t* nonfinite);
Error SubmitBlockwise8Decode(CudaDevice* device, const uint8_t* payload, uint32_t block,
                             const TensorView& x, unsigned long long* refused);

}  // namespace thinwire
