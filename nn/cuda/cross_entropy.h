// Softmax cross-entropy; contract in nn/ops.h. A thread's exponentials and their sum are fp32, the
// sum over threads and the loss fp64, of which many GPUs have few units.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Waits for its results, and so for all that this thread has submitted.
Error SoftmaxCrossEntropy(CudaDevice* device, const CrossEntropy& arguments, LossSums* sums);

}  // namespace thinwire::cuda
