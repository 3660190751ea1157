// Gives the first stage its inputs and the last stage its labels, in the order that (seed, epoch)
// fixes. If the device is not the host, a thread of the feed loads ahead.
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

// Take and Announce are called on one thread.
class Feed {
 public:
  // Makes a feed; `data` outlives it.
  Feed(const FeedSpec& spec, const DataSplits* data, const Backend& backend);
  ~Feed();

  // Announces the requests of the next Takes, in order. This matters for speed only: a Take of
  // anything else waits for its samples and discards the announcement.
  void Announce(const std::vector<FeedRequest>& requests);

  // Returns the samples; inputs are on the backend's device: images in the compute type, tokens as
  // int32.
  absl::StatusOr<Samples> Take(const FeedRequest& request);

  // Returns the number of labels of these samples that are not ignored. Reads them only where some
  // may be. Called on Take's thread.
  absl::StatusOr<int64_t> CountLabels(const FeedRequest& request);

 private:
  // Loads samples and moves their inputs to the backend's device.
  absl::StatusOr<LoadedSamples> Load(const FeedRequest& request);
  absl::StatusOr<LoadedSamples> TakeLoaded(const FeedRequest& request);
  absl::StatusOr<Tensor> Converted(Tensor inputs) const;
  void Expect(const std::vector<FeedRequest>& requests) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoadAhead();

  const FeedSpec spec_;
  const DataSplits* const data_;
  const Backend backend_;
  SampleLoader loader_;    // used by thread_, or by Take's caller without one
  SampleLoader counting_;  // loads labels only
  // Last request of CountLabels, and its result.
  std::optional<FeedRequest> counted_;
  int64_t labels_ = 0;

  std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  std::condition_variable changed_;
  std::deque<FeedRequest> expected_ ABSL_GUARDED_BY(mutex_);  // announced, not yet taken
  // Samples of the first requests in expected_.
  std::deque<absl::StatusOr<LoadedSamples>> loaded_ ABSL_GUARDED_BY(mutex_);
  // Number of the announcement that these belong to.
  uint64_t announcement_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<std::thread> thread_;  // empty if the device is the host
};

}  // namespace thinwire
