// Streams, and what they capture for graphs.
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

// Queues work, or keeps it while the stream captures. The null stream waits for all the others and
// runs it at once.
cudaError_t Submit(cudaStream_t stream, Work work);

// For what a capturing stream does not allow: true, and the capture is lost, if it captures.
bool InvalidateCapture(cudaStream_t stream);
// The same for whichever stream captures.
bool InvalidateCaptures();
// For calls like cudaMalloc that may wait for a device, depending on the modes of captures.
bool UnsafeWhileCapturing();

}  // namespace cuda_on_host

struct CUstream_st {
  std::shared_ptr<cuda_on_host::Queue> queue;
  // Guarded by the lock in stream.cc.
  std::unique_ptr<cuda_on_host::Capture> capture;
};
