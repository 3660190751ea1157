// Waits that poll for a while before they sleep.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <thread>

namespace thinwire {

constexpr unsigned kCoresToPoll = 8;
constexpr std::chrono::milliseconds kPollTime{20};

// Polls `query`, which returns a cudaError_t, for up to kPollTime; returns true once the work is
// done. Waking a sleeping thread takes as long as ten small kernels. So where there are many cores,
// a few threads may each keep one from sleep. A poll yields its core to other threads.
template <typename Query>
bool PollUntilDone(const Query& query) {
  static const bool has_cores = std::thread::hardware_concurrency() >= kCoresToPoll;
  if (!has_cores) return false;
  const auto end = std::chrono::steady_clock::now() + kPollTime;
  while (std::chrono::steady_clock::now() < end) {
    const cudaError_t state = query();
    if (state == cudaSuccess) return true;
    if (state != cudaErrorNotReady) return false;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace thinwire
