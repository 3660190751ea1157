// Running a plan to see whether it runs, and how fast.
#pragma once

#include "nn/cuda/convolution_plan.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// What a trial of a convolution's plan runs on.
struct TrialOperands {
  const void* x;
  const void* w;
  const void* y;  // one of the three is the result, and overwritten
};

// Runs it once and waits for it. Not while recording.
Error TryPlan(CudaDevice* device, cudnnHandle_t handle, const ConvolutionPlan& plan,
              const TrialOperands& operands);

// Runs it a few times more, *milliseconds in all.
Error TimePlan(CudaDevice* device, cudnnHandle_t handle, const ConvolutionPlan& plan,
               const TrialOperands& operands, float* milliseconds);

}  // namespace thinwire::cuda
