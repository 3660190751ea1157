#include "tensor/cuda/streams.h"

#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

struct Held {
  Streams* of = nullptr;
  cudaStream_t stream = nullptr;
};

// Pointers and numbers, which are there until the very end of a thread: what it frees while it
// ends may need its stream again.
thread_local int current_device = -1;
thread_local std::vector<Held>* held = nullptr;  // by this thread, one per device

struct AtThreadEnd {
  ~AtThreadEnd() {
    if (held == nullptr) return;
    for (const Held& one : *held) one.of->GiveBack(one.stream);
    delete held;
    held = nullptr;
  }
};

}  // namespace

Error Streams::MakeCurrent() {
  if (current_device == device_) return Error{};
  CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  current_device = device_;
  return Error{};
}

Error Streams::OfThread(cudaStream_t* stream) {
  RETURN_ERROR(MakeCurrent());
  if (held == nullptr) {
    thread_local AtThreadEnd at_thread_end;
    (void)at_thread_end;
    held = new std::vector<Held>;
  }
  for (const Held& one : *held) {
    if (one.of != this) continue;
    *stream = one.stream;
    return Error{};
  }
  RETURN_ERROR(Take(stream));
  held->push_back({this, *stream});
  return Error{};
}

Error Streams::Take(cudaStream_t* stream) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      *stream = idle_.back();
      idle_.pop_back();
      return Error{};
    }
  }
  RETURN_ERROR(MakeCurrent());
  CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  return Error{};
}

void Streams::GiveBack(cudaStream_t stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(stream);
}

}  // namespace thinwire
