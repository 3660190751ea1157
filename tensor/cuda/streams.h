// Keeps a stream for each host thread that uses a device.
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
// Never destroyed, since threads refer to it until they end. Any thread.
class Streams {
 public:
  explicit Streams(int device);
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // Makes the device the calling thread's, for CUDA calls without a stream. A thread that never did
  // so uses device 0, whichever ours is.
  Error MakeCurrent();

  // Returns the calling thread's stream, created on first use, and makes the device the thread's.
  Error OfThread(cudaStream_t* stream);

  // Takes a stream for work that is not a thread's own. GiveBack returns it.
  Error Take(cudaStream_t* stream);
  void GiveBack(cudaStream_t stream);

 private:
  struct Held;
  static void GiveBackAtThreadEnd(void* held);

  const int device_;
  // Key of a thread's Held. It is no thread_local: one of those could be destroyed later and still
  // free memory.
  pthread_key_t key_ = 0;
  const int key_error_;
  std::mutex mutex_;
  std::vector<cudaStream_t> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
