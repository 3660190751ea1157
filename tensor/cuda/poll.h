// Waits that stay awake for a while.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <thread>

namespace thinwire {

constexpr unsigned kCoresToPoll = 8;
constexpr std::chrono::milliseconds kPollTime{20};

// Whether what `query` asks for (a cudaError_t) is done, or has failed, soon. To be woken up takes
// a sleeping thread as long as ten small kernels take; a few threads may keep a core each from
// sleep where there are many. Others get the core that a poll does not use.
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
