// Runs host code as work of a stream. On the emulator it replaces a library's kernels.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire::cuda {

// Must outlive the recordings that its work is part of.
class HostWork {
 public:
  explicit HostWork(CudaDevice* device)
      : device_(device), failure_(std::make_shared<FirstFailure>()) {}

  // Submits `body`. It runs when the calling thread's stream reaches it, and again whenever a
  // recording of it is replayed. Returns the first failure of what was submitted before.
  Error Submit(std::function<Error()> body) {
    {
      const std::lock_guard<std::mutex> lock(failure_->mutex);
      RETURN_ERROR(failure_->error);
    }
    cudaStream_t stream;
    RETURN_ERROR(device_->Stream(&stream));
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    CUDA_RETURN_IF_ERROR(cudaStreamIsCapturing(stream, &capture));
    const bool once = capture == cudaStreamCaptureStatusNone;
    auto work = std::make_unique<Work>(Work{std::move(body), failure_, once});
    CUDA_RETURN_IF_ERROR(cudaLaunchHostFunc(stream, &Run, work.get()));
    if (once) {
      (void)work.release();  // Run deletes it
    } else {
      recorded_.push_back(std::move(work));
    }
    return Error{};
  }

 private:
  struct FirstFailure {
    std::mutex mutex;
    Error error ABSL_GUARDED_BY(mutex);
  };
  struct Work {
    std::function<Error()> body;
    std::shared_ptr<FirstFailure> failure;
    bool once;
  };

  static void Run(void* data) {
    auto* const work = static_cast<Work*>(data);
    if (const Error error = work->body(); !error.ok()) {
      const std::lock_guard<std::mutex> lock(work->failure->mutex);
      if (work->failure->error.ok()) work->failure->error = error;
    }
    if (work->once) delete work;
  }

  CudaDevice* const device_;
  const std::shared_ptr<FirstFailure> failure_;
  std::vector<std::unique_ptr<Work>> recorded_;
};

}  // namespace thinwire::cuda
