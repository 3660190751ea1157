// The CUDA backend's arithmetic: cuDNN for convolutions, cuBLASLt for matrix products, own kernels
// for the rest. Calls submit work to the calling thread's stream and return; all but
// SoftmaxCrossEntropy can be recorded.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// The caller deletes *ops. `device` outlives it.
Error NewCudaOps(CudaDevice* device, const OpsOptions& options, Ops** ops);

}  // namespace thinwire
