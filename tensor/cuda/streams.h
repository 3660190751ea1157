// A stream for each host thread that uses a device.
#pragma once

#include <cuda_runtime.h>
#include <pthread.h>

#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "tensor/error.h"

namespace thinwire {

// The streams of one device. A thread that ends leaves its stream to others, so that training runs
// may come and go.
// Never destroyed: threads refer to it until they end. Any thread.
class Streams {
 public:
  explicit Streams(int device);
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // Makes the device the calling thread's. For calls of CUDA without a stream: those of a thread
  // that never did so use device 0, whichever ours is.
  Error MakeCurrent();

  // The calling thread's, created on first use; also makes the device the thread's.
  Error OfThread(cudaStream_t* stream);

  // A stream for other work than a thread's own, to be given back.
  Error Take(cudaStream_t* stream);
  void GiveBack(cudaStream_t stream);

 private:
  struct Held;
  static void GiveBackAtThreadEnd(void* held);

  const int device_;
  // A thread's Held. Not a thread_local: those are destroyed before it, and may free memory then.
  pthread_key_t key_ = 0;
  const int key_error_;
  std::mutex mutex_;
  std::vector<cudaStream_t> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
