// Runs a plan to see whether it works, and how fast.
#pragma once

#include "nn/cuda/convolution_plan.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Operands of a trial of a convolution's plan.
struct TrialOperands {
  const void* x;
  const void* w;
  const void* y;  // one of the three is the result and is overwritten
};

// Runs the plan once and waits. Not while recording.
Error TryPlan(CudaDevice* device, cudnnHandle_t handle, const ConvolutionPlan& plan,
              const TrialOperands& operands);

// Runs the plan a few more times and sets their total time.
Error TimePlan(CudaDevice* device, cudnnHandle_t handle, const ConvolutionPlan& plan,
               const TrialOperands& operands, float* milliseconds);

}  // namespace thinwire::cuda
