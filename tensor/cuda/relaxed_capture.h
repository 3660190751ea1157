// Calls that must not become part of a recording, nor end it.
#pragma once

#include <cuda_runtime.h>

namespace thinwire {

// For the length of a scope, this thread may make calls that CUDA thinks unsafe while a stream
// is captured: new memory, waits for other streams.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // then: the mode before
};

}  // namespace thinwire
