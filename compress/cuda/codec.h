// Function types that every codec has on a GPU, as compress/cpu/codec.h has the CPU's: `CudaEncode
// CudaTopKEncode;` declares a function with CudaEncode's parameters.
#pragma once

#include "compress/cuda/payload.h"
#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Encode and decode, see CodecKernels; x is in memory of `device`. The text of a decoder's error
// about a payload in device memory is never shown.
using CudaEncode = Error(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                         const KernelContext& context, const PayloadTarget& payload);
using CudaDecode = Error(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                         const KernelContext& context, const TensorView& x);

}  // namespace thinwire
