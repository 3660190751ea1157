// Holds work that was submitted to a stream and has not run yet.
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

using Work = std::function<void()>;

// Queue of work in order. Work runs when somebody waits for it, on the thread that waits. Any
// thread may call.
class Queue {
 public:
  void Add(Work work);
  bool idle() const { return num_done_ == num_added_; }
  // Returns when all work that had been added before the call has run.
  void Finish();
  // Runs work while `wanted` returns true. Work of this queue must make it false in the end.
  void RunWhile(const std::function<bool()>& wanted);
  // Runs one piece of work, if there is any and no other thread runs one.
  void RunOne();

 private:
  std::atomic<bool> running_{false};  // a thread runs work
  std::mutex mutex_;                  // guards pending_
  std::deque<Work> pending_;
  std::atomic<int64_t> num_added_{0};
  std::atomic<int64_t> num_done_{0};
};

// These add to, remove from and finish the list of queues of all streams that exist.
std::shared_ptr<Queue> NewQueue();
void DropQueue(const std::shared_ptr<Queue>& queue);
void FinishEveryQueue();

}  // namespace cuda_on_host
