// Batch norm with residual and ReLU fused in; contracts in nn/ops.h.
//
// Training reads x twice: for the statistics and to normalise. Backward reads (dy, x) twice. It
// recomputes the ReLU's mask from x, or with a residual reads it once from y. Sums of squares do
// not cancel, as they are of x - x[first pixel], which is near the mean. They are fp32 over at most
// 64 pixels of a thread and over its warp, and fp64 beyond (columns.cuh).
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error NormalizeBatch(CudaDevice* device, const BatchNormForward& arguments);
Error NormalizeByRunning(CudaDevice* device, const BatchNormInference& arguments);
Error NormalizeBatchBackward(CudaDevice* device, const BatchNormBackward& arguments);

}  // namespace thinwire::cuda
