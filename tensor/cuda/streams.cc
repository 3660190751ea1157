#include "tensor/cuda/streams.h"

#include <cstring>
#include <memory>

#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

thread_local int current_device = -1;

}  // namespace

struct Streams::Held {
  Streams* of;
  cudaStream_t stream;
};

Streams::Streams(int device)
    : device_(device), key_error_(pthread_key_create(&key_, &GiveBackAtThreadEnd)) {}

void Streams::GiveBackAtThreadEnd(void* held) {
  const std::unique_ptr<const Held> ours(static_cast<const Held*>(held));
  ours->of->GiveBack(ours->stream);
}

Error Streams::MakeCurrent() {
  if (current_device == device_) return Error{};
  CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  current_device = device_;
  return Error{};
}

Error Streams::OfThread(cudaStream_t* stream) {
  if (key_error_ != 0) {
    return MakeError(absl::StatusCode::kResourceExhausted, "cuda:%d: pthread_key_create: %s",
                     device_, std::strerror(key_error_));
  }
  RETURN_ERROR(MakeCurrent());
  if (const void* const held = pthread_getspecific(key_)) {
    *stream = static_cast<const Held*>(held)->stream;
    return Error{};
  }
  RETURN_ERROR(Take(stream));
  pthread_setspecific(key_, new Held{this, *stream});
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
