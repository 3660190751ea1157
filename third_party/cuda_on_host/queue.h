// What was submitted to a stream and has not run yet.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "third_party/cuda_on_host/runtime_api.h"

namespace cuda_on_host {

struct Work {
  cudaGraphNodeType type;
  std::function<void()> run;
};

// Work runs when somebody waits for it, on the thread that waits. Any thread.
class Queue {
 public:
  void Add(std::function<void()> work);
  bool idle() const { return num_done_ == num_added_; }
  // Runs what had been added by now.
  void Finish();
  // Runs work while `wanted` returns true, which work of this queue must end.
  void RunWhile(const std::function<bool()>& wanted);
  // Runs one piece of work, if there is any and nobody else runs one.
  void RunOne();

 private:
  std::atomic<bool> running_{false};  // a thread runs work
  std::mutex mutex_;                  // guards pending_
  std::deque<std::function<void()>> pending_;
  std::atomic<int64_t> num_added_{0};
  std::atomic<int64_t> num_done_{0};
};

// All queues of streams that live.
std::shared_ptr<Queue> NewQueue();
void DropQueue(const std::shared_ptr<Queue>& queue);
void FinishEveryQueue();

}  // namespace cuda_on_host
