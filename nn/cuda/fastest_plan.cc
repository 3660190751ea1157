#include "nn/cuda/fastest_plan.h"

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

// Times kTimedCalls executions of `plan`, after one that loads the kernels.
Error Time(CudaDevice* device, cudnnHandle_t handle, const ConvolutionPlan& plan, const void* x,
           const void* w, const void* y, float* milliseconds) {
  cudaStream_t stream;
  RETURN_ERROR(device->Stream(&stream));
  Workspace workspace(device);
  RETURN_ERROR(workspace.Reserve(static_cast<size_t>(plan.workspace_bytes())));
  RETURN_ERROR(plan.Run(handle, x, w, y, workspace.data()));
  Event begin, end;
  RETURN_ERROR(begin.Record(stream));
  for (int i = 0; i < kTimedCalls; ++i) RETURN_ERROR(plan.Run(handle, x, w, y, workspace.data()));
  RETURN_ERROR(end.Record(stream));
  CUDA_RETURN_IF_ERROR(cudaEventSynchronize(end.get()));
  CUDA_RETURN_IF_ERROR(cudaEventElapsedTime(milliseconds, begin.get(), end.get()));
  return Error{};
}

}  // namespace

Error FindFastest(CudaDevice* device, cudnnHandle_t handle,
                  const std::vector<ConvolutionPlan>& plans, const void* x, const void* w,
                  const void* y, size_t* fastest) {
  Error last;
  float least = -1;
  for (size_t i = 0; i < plans.size(); ++i) {
    float milliseconds = 0;
    if (const Error error = Time(device, handle, plans[i], x, w, y, &milliseconds); !error.ok()) {
      last = error;
      continue;
    }
    if (least < 0 || milliseconds < least) {
      least = milliseconds;
      *fastest = i;
    }
  }
  return least < 0 ? last : Error{};
}

}  // namespace thinwire::cuda
