// Softmax cross-entropy; contract in nn/ops.h. Exponentials are fp32, whose sums are fp64 from the
// threads' own up: many GPUs have few units of fp64.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Waits for its results, and so for all that this thread has submitted.
Error SoftmaxCrossEntropy(CudaDevice* device, const CrossEntropy& arguments, double* loss,
                          int64_t* correct);

}  // namespace thinwire::cuda
