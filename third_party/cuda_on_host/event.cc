#include <atomic>
#include <chrono>
#include <memory>

#include "third_party/cuda_on_host/device.h"
#include "third_party/cuda_on_host/queue.h"
#include "third_party/cuda_on_host/stream.h"

namespace {

using Clock = std::chrono::steady_clock;

// One recording of an event. It is shared, because the work that makes it still needs it after the
// event is recorded anew.
struct Recording {
  std::shared_ptr<cuda_on_host::Queue> queue;  // null for the null stream
  std::atomic<bool> done{false};
  Clock::time_point time;

  void Wait() {
    if (queue != nullptr) queue->RunWhile([this] { return !done; });
  }
};

}  // namespace

// Event, used by one thread at a time.
struct CUevent_st {
  bool timed = true;
  bool captured = false;
  std::shared_ptr<Recording> last;  // null until it is recorded
};

using namespace cuda_on_host;  // NOLINT: the functions below are CUDA's, in no namespace

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st;
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return Noted(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  cudaStreamCaptureStatus status;
  cudaStreamIsCapturing(stream, &status);
  event->captured = status != cudaStreamCaptureStatusNone;
  if (event->captured) return cudaSuccess;  // a graph runs its nodes in order anyway
  const auto recording = std::make_shared<Recording>();
  if (stream != nullptr) recording->queue = stream->queue;
  event->last = recording;
  return Noted(Submit(stream, [recording] {
    recording->time = Clock::now();
    recording->done = true;
  }));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->captured) return Noted(cudaErrorCapturedEvent);
  if (event->last != nullptr) event->last->Wait();
  return cudaSuccess;
}

// Runs one piece of work of the event's stream with each call, as if the device had made progress
// since the last. Loops that ask until the event is done thus come to an end.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->captured) return Noted(cudaErrorCapturedEvent);
  if (event->last == nullptr || event->last->done) return cudaSuccess;
  event->last->queue->RunOne();
  return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  for (cudaEvent_t event : {start, end}) {
    if (event->captured) return Noted(cudaErrorCapturedEvent);
    if (event->last == nullptr || !event->timed) return Noted(cudaErrorInvalidResourceHandle);
    if (!event->last->done) return Noted(cudaErrorNotReady);
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->last->time - start->last->time).count();
  return cudaSuccess;
}
