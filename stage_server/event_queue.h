// Events from the executor's thread to the thread that writes them to the coordinator.
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
  void Push(const StageEvent& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back(event);
    changed_.notify_one();
  }
  void Finish(absl::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    result_ = std::move(status);
    changed_.notify_one();
  }
  // Events that have come within `wait`, and the result once nothing follows it.
  std::pair<std::vector<StageEvent>, std::optional<absl::Status>> Take(
      std::chrono::milliseconds wait) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, wait, [this] { return !events_.empty() || result_.has_value(); });
    return {std::exchange(events_, {}), result_};
  }

 private:
  std::mutex mutex_;  // of timed waits, which absl::Mutex takes by the time of day
  std::condition_variable changed_;
  std::vector<StageEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
