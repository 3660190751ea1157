// Matrices of low rank.
#pragma once

#include "compress/spec.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::LowRankEncode. The steps are those of compress/cpu/low_rank.h; the orders of
// their fp64 sums are not, so that factors may differ from the CPU's in their last bits.
Error CudaLowRankEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                        const float* warm_start, uint8_t* payload, size_t capacity, size_t* bytes);
// Equal to the CPU's to the last bit.
Error CudaLowRankDecode(CudaDevice* device, const uint8_t* payload, size_t bytes,
                        const CodecSpec& spec, const TensorView& x);

}  // namespace thinwire
