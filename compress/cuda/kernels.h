// The codec kernels on a GPU: the bytes and bits of compress/cpu/kernels.h.
#pragma once

#include <memory>

#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// For tensors in memory of `device`, which outlives it. From any thread, several at once: each
// works on its own stream.
std::unique_ptr<CodecKernels> NewCudaCodecKernels(CudaDevice* device);

}  // namespace thinwire
