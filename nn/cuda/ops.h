// The CUDA backend's arithmetic: cuDNN for convolutions, cuBLASLt for matrix products, own kernels
// for all else. Calls submit work to the calling thread's stream and return; only SumsOfSquares
// waits. All can be recorded but that one and the losses, which read their labels from host memory.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Makes ops, which the caller deletes. `device` outlives them.
Error NewCudaOps(CudaDevice* device, const OpsOptions& options, Ops** ops);

}  // namespace thinwire
