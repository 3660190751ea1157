#include "nn/cuda/plan_trial.h"

#include <cuda_runtime.h>

#include "nn/cuda/workspace.h"

namespace thinwire::cuda {
namespace {

constexpr int kTimedCalls = 3;

class Event {
 public:
  Event() = default;
  ~Event() {
    if (event_ != nullptr) (void)cudaEventDestroy(event_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  Error Record(cudaStream_t stream) {
    if (event_ == nullptr) CUDA_RETURN_IF_ERROR(cudaEventCreate(&event_));
    CUDA_RETURN_IF_ERROR(cudaEventRecord(event_, stream));
    return Error{};
  }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

Error TryPlan(CudaDevice* device, cudnnHandle_t handle, const ConvolutionPlan& plan,
              const TrialOperands& operands) {
  Workspace workspace(device);
  RETURN_ERROR(workspace.Reserve(static_cast<size_t>(plan.workspace_bytes())));
  RETURN_ERROR(plan.Run(handle, operands.x, operands.w, operands.y, workspace.data()));
  return device->Finish();
}

Error TimePlan(CudaDevice* device, cudnnHandle_t handle, const ConvolutionPlan& plan,
               const TrialOperands& operands, float* milliseconds) {
  RETURN_ERROR(TryPlan(device, handle, plan, operands));  // also loads the kernels
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  Workspace workspace(device);
  RETURN_ERROR(workspace.Reserve(static_cast<size_t>(plan.workspace_bytes())));
  Event begin, end;
  RETURN_ERROR(begin.Record(stream));
  for (int i = 0; i < kTimedCalls; ++i) {
    RETURN_ERROR(plan.Run(handle, operands.x, operands.w, operands.y, workspace.data()));
  }
  RETURN_ERROR(end.Record(stream));
  CUDA_RETURN_IF_ERROR(cudaEventSynchronize(end.get()));
  CUDA_RETURN_IF_ERROR(cudaEventElapsedTime(milliseconds, begin.get(), end.get()));
  return Error{};
}

}  // namespace thinwire::cuda
