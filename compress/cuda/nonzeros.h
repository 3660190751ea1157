// Bitmap of a tensor's non-zeros, as a SupportView has it.
#pragma once

#include <cstdint>

#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::FindNonzeros.
Error CudaFindNonzeros(CudaDevice* device, const TensorView& x, uint64_t* words, int64_t* count);

}  // namespace thinwire
