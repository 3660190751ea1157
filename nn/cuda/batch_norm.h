// Batch norm with residual and ReLU fused in; contracts in nn/ops.h.
//
// Training reads x twice: once for the statistics, once to normalise. Backward reads (dy, x) twice;
// the ReLU's mask is recomputed from x, or with a residual read once from y. Sums of squares do not
// cancel: they are taken of x - x[first pixel], which lies near the mean, in fp32 over at most 64
// pixels of a thread and its warp and in fp64 over these (columns.cuh).
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error NormalizeBatch(CudaDevice* device, const BatchNormForward& arguments);
Error NormalizeByRunning(CudaDevice* device, const BatchNormInference& arguments);
Error NormalizeBatchBackward(CudaDevice* device, const BatchNormBackward& arguments);

}  // namespace thinwire::cuda
