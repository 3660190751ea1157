// Which of several plans is the fastest, by trying.
#pragma once

#include <vector>

#include "nn/cuda/convolution_plan.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Runs each a few times on the given operands, waiting for each; the result among x, w, y is
// overwritten. Not while recording. A plan that fails is no candidate; if all do, the error of the
// last.
Error FindFastest(CudaDevice* device, cudnnHandle_t handle,
                  const std::vector<ConvolutionPlan>& plans, const void* x, const void* w,
                  const void* y, size_t* fastest);

}  // namespace thinwire::cuda
