// Allows calls that must neither become part of a recording nor end it.
#pragma once

#include <cuda_runtime.h>

namespace thinwire {

// Allows this thread, for the duration of a scope, calls that CUDA considers unsafe while a stream
// is captured: new memory, waits for other streams.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  // Between the exchanges: the mode before.
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace thinwire
