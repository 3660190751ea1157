#include "nn/cuda/work_timer.h"

#include <cuda_runtime.h>

#include "tensor/cuda/error.h"

namespace thinwire::cuda {
namespace {

class EventTimer final : public WorkTimer {
 public:
  explicit EventTimer(CudaDevice* device) : device_(device) {}
  ~EventTimer() override {
    for (cudaEvent_t event : {start_, stop_}) {
      if (event != nullptr) (void)cudaEventDestroy(event);
    }
  }

  Error Start() override { return Record(&start_); }
  Error Stop() override { return Record(&stop_); }
  Error Seconds(double* seconds) override {
    float milliseconds = 0;
    CUDA_RETURN_IF_ERROR(cudaEventElapsedTime(&milliseconds, start_, stop_));
    *seconds = static_cast<double>(milliseconds) * 1e-3;
    return Error{};
  }

 private:
  Error Record(cudaEvent_t* event) {
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    if (*event == nullptr) CUDA_RETURN_IF_ERROR(cudaEventCreate(event));
    CUDA_RETURN_IF_ERROR(cudaEventRecord(*event, stream));
    return Error{};
  }

  CudaDevice* const device_;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

}  // namespace

Error NewWorkTimer(CudaDevice* device, WorkTimer** timer) {
  *timer = new EventTimer(device);
  return Error{};
}

}  // namespace thinwire::cuda
