// Streams, and the work that they capture for graphs.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "third_party/cuda_on_host/queue.h"
#include "third_party/cuda_on_host/runtime_api.h"

namespace cuda_on_host {

struct Capture {
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool invalid = false;
  std::vector<Work> nodes;
};

// Adds `work` to the stream's queue, or to its capture while it captures. The null stream waits for
// all the others and then runs the work at once.
cudaError_t Submit(cudaStream_t stream, Work work);

// Reports a call that a capturing stream does not allow. If `stream` captures, its capture becomes
// invalid, and the function returns true.
bool InvalidateCapture(cudaStream_t stream);
// Does the same for every stream that captures.
bool InvalidateCaptures();
// Reports a call that may wait for a device, such as cudaMalloc. Whether it invalidates a capture
// depends on the modes of the capture and of the thread. Returns true if it did.
bool UnsafeWhileCapturing();

}  // namespace cuda_on_host

struct CUstream_st {
  std::shared_ptr<cuda_on_host::Queue> queue;
  // Guarded by the lock in stream.cc.
  std::unique_ptr<cuda_on_host::Capture> capture;
};
