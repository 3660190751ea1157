// Codec kernels on a GPU, which give the bytes and bits of compress/cpu/kernels.h.
#pragma once

#include <memory>

#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Makes the kernels for tensors in memory of `device`, which outlives them. Any thread may call
// them, several at once; each thread works on its own stream.
std::unique_ptr<CodecKernels> NewCudaCodecKernels(CudaDevice* device);

}  // namespace thinwire
