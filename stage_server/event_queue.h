// Passes events from the executor's thread to the thread that writes them to the coordinator.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "proto/stage.pb.h"

namespace thinwire {

class EventQueue {
 public:
  // Adds an event.
  void Push(const StageEvent& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back(event);
    changed_.notify_one();
  }
  // Sets the result of the call, after its last event.
  void Finish(absl::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    result_ = std::move(status);
    changed_.notify_one();
  }
  // Waits up to `wait` and returns the events that have come. Also returns the result if it is set;
  // then no events follow.
  std::pair<std::vector<StageEvent>, std::optional<absl::Status>> Take(
      std::chrono::milliseconds wait) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, wait, [this] { return !events_.empty() || result_.has_value(); });
    return {std::exchange(events_, {}), result_};
  }

 private:
  std::mutex mutex_;  // absl::Mutex's timed waits follow the wall clock
  std::condition_variable changed_;
  std::vector<StageEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
