// Softmax cross-entropy; contract in nn/ops.h. A thread's exponentials and their sum are fp32. The
// sum over threads and the loss are fp64, for which many GPUs have few units.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Submits the work and returns. *sums is memory of Device::host() and valid after a Finish.
Error SoftmaxCrossEntropy(CudaDevice* device, const CrossEntropy& arguments, LossSums* sums);

}  // namespace thinwire::cuda
