// Hands the first stage its inputs and the last stage its labels, in the order that (seed, epoch)
// fixes. For a device that computes while the host does something else, a thread of the feed loads
// ahead.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "stage_server/stage/local_stage.h"
#include "stage_server/stage/sample_loader.h"

namespace thinwire {

// Take and Announce: one thread.
class Feed {
 public:
  // `data` outlives the feed.
  Feed(const FeedSpec& spec, const DataSplits* data, const Backend& backend);
  ~Feed();

  // What the next Takes ask for, in this order. Only speed depends on it: whoever takes something
  // else waits for it, and the rest is forgotten.
  void Announce(const std::vector<FeedRequest>& requests);

  // Inputs are on the backend's device: images in the compute type, tokens as int32.
  absl::StatusOr<Samples> Take(const FeedRequest& request);

 private:
  // What the loader gives, with inputs on the backend's device.
  absl::StatusOr<LoadedSamples> Load(const FeedRequest& request);
  absl::StatusOr<LoadedSamples> TakeLoaded(const FeedRequest& request);
  absl::StatusOr<Tensor> Converted(Tensor inputs) const;
  void Expect(const std::vector<FeedRequest>& requests) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoadAhead();

  const FeedSpec spec_;
  const Backend backend_;
  SampleLoader loader_;  // the thread's, or without one the caller's of Take

  std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  std::condition_variable changed_;
  std::deque<FeedRequest> expected_ ABSL_GUARDED_BY(mutex_);  // announced and not yet taken
  // What the first of these asked for.
  std::deque<absl::StatusOr<LoadedSamples>> loaded_ ABSL_GUARDED_BY(mutex_);
  uint64_t announcement_ ABSL_GUARDED_BY(mutex_) = 0;  // whose requests these are
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<std::thread> thread_;  // where the device is not the host
};

}  // namespace thinwire
