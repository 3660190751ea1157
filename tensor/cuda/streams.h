// A stream for each host thread that uses a device.
#pragma once

#include <cuda_runtime.h>

#include <mutex>
#include <vector>

#include "tensor/error.h"

namespace thinwire {

// Of one device. A thread that ends leaves its stream to others, so that runs may come and go.
// Never destroyed: threads refer to it until they end. Any thread.
class Streams {
 public:
  explicit Streams(int device) : device_(device) {}

  // The calling thread's, created on first use; also makes the device the thread's.
  Error OfThread(cudaStream_t* stream);

  // One for other work than a thread's own, to be given back.
  Error Take(cudaStream_t* stream);
  void GiveBack(cudaStream_t stream);

 private:
  Error MakeCurrent();

  const int device_;
  std::mutex mutex_;
  std::vector<cudaStream_t> idle_;  // guarded by mutex_
};

}  // namespace thinwire
