#include "third_party/cuda_on_host/stream.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "third_party/cuda_on_host/device.h"
#include "third_party/cuda_on_host/graph.h"

namespace cuda_on_host {
namespace {

std::mutex mutex;
std::vector<cudaStream_t> capturing;  // guarded by mutex, as are their captures
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

}  // namespace

cudaError_t Submit(cudaStream_t stream, Work work) {
  if (stream == nullptr) {
    if (InvalidateCaptures()) return cudaErrorStreamCaptureImplicit;
    FinishEveryQueue();
    work();
    return cudaSuccess;
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (stream->capture != nullptr) {
      if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
      stream->capture->nodes.push_back(std::move(work));
      return cudaSuccess;
    }
  }
  stream->queue->Add(std::move(work));
  return cudaSuccess;
}

bool InvalidateCapture(cudaStream_t stream) {
  if (stream == nullptr) return InvalidateCaptures();
  std::lock_guard<std::mutex> lock(mutex);
  if (stream->capture == nullptr) return false;
  stream->capture->invalid = true;
  return true;
}

bool InvalidateCaptures() {
  std::lock_guard<std::mutex> lock(mutex);
  for (cudaStream_t stream : capturing) stream->capture->invalid = true;
  return !capturing.empty();
}

bool UnsafeWhileCapturing() {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return false;
  bool unsafe = false;
  std::lock_guard<std::mutex> lock(mutex);
  for (cudaStream_t stream : capturing) {
    Capture& capture = *stream->capture;
    if (capture.mode == cudaStreamCaptureModeRelaxed) continue;
    if (capture.thread != std::this_thread::get_id() &&
        (capture.mode != cudaStreamCaptureModeGlobal ||
         thread_mode != cudaStreamCaptureModeGlobal)) {
      continue;
    }
    capture.invalid = true;
    unsafe = true;
  }
  return unsafe;
}

}  // namespace cuda_on_host

using namespace cuda_on_host;  // NOLINT: the functions below are CUDA's, in no namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = new CUstream_st{NewQueue(), nullptr};
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return Noted(cudaErrorInvalidResourceHandle);
  {
    std::lock_guard<std::mutex> lock(mutex);
    capturing.erase(std::remove(capturing.begin(), capturing.end(), stream), capturing.end());
  }
  stream->queue->Finish();
  DropQueue(stream->queue);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (InvalidateCapture(stream)) return Noted(cudaErrorStreamCaptureUnsupported);
  if (stream == nullptr) {
    FinishEveryQueue();
  } else {
    stream->queue->Finish();
  }
  return cudaSuccess;
}

// Runs one piece of work of the stream with each call, as if the device had made progress since the
// last. Loops that ask until the stream is idle thus come to an end.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (InvalidateCapture(stream)) return Noted(cudaErrorStreamCaptureUnsupported);
  if (stream == nullptr) return cudaStreamSynchronize(stream);
  if (stream->queue->idle()) return cudaSuccess;
  stream->queue->RunOne();
  return cudaErrorNotReady;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return Noted(Submit(stream, [function, data] { function(data); }));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (stream == nullptr) return Noted(cudaErrorStreamCaptureUnsupported);
  std::lock_guard<std::mutex> lock(mutex);
  if (stream->capture != nullptr) return Noted(cudaErrorInvalidValue);
  stream->capture.reset(new Capture{mode, std::this_thread::get_id(), false, {}});
  capturing.push_back(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (stream == nullptr) return Noted(cudaErrorStreamCaptureUnmatched);
  std::lock_guard<std::mutex> lock(mutex);
  if (stream->capture == nullptr) return Noted(cudaErrorStreamCaptureUnmatched);
  if (stream->capture->mode != cudaStreamCaptureModeRelaxed &&
      stream->capture->thread != std::this_thread::get_id()) {
    return Noted(cudaErrorStreamCaptureWrongThread);
  }
  capturing.erase(std::remove(capturing.begin(), capturing.end(), stream), capturing.end());
  const std::unique_ptr<Capture> capture = std::move(stream->capture);
  if (capture->invalid) return Noted(cudaErrorStreamCaptureInvalidated);
  *graph = NewGraph(std::move(capture->nodes));
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  std::lock_guard<std::mutex> lock(mutex);
  *status = stream == nullptr || stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->invalid                      ? cudaStreamCaptureStatusInvalidated
                                                            : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}
