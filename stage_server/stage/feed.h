// Gives the first stage its inputs and the last stage its labels, in the order that (seed, epoch)
// fixes. If the device is not the host, a thread of the feed loads ahead.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "proto/boundary.pb.h"
#include "stage_server/stage/local_stage.h"

namespace thinwire {

struct FeedSpec {
  Shuffle shuffle;
  AugmentKind augment = AugmentKind::kPerEpoch;
  DType compute = DType::kF32;
  bool inputs = false;  // fill Samples::inputs (first stage)
  bool labels = false;  // fill Samples::labels (last stage)
};

// Asks for samples [range.first, range.last) of the epoch's order. Training shuffles and augments
// them; recalibration takes the training set as it is, evaluation the test set.
struct FeedRequest {
  Phase phase = PHASE_TRAIN;
  uint32_t epoch = 0;  // for training only
  SampleRange range;
  // Only these positions of token sequences: a slice (schedule terapipe).
  std::optional<SampleRange> positions = {};

  friend bool operator==(const FeedRequest& a, const FeedRequest& b) {
    return a.phase == b.phase && a.epoch == b.epoch && a.range == b.range &&
           a.positions == b.positions;
  }
};

class SampleLoader;

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
  absl::StatusOr<Samples> Load(const FeedRequest& request);
  // Takes what the thread has loaded, and waits for it.
  absl::StatusOr<Samples> AwaitLoaded(const FeedRequest& request);
  void Expect(const std::vector<FeedRequest>& requests) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoadAhead();

  const FeedSpec spec_;
  const DataSplits* const data_;
  const Backend backend_;
  const std::unique_ptr<SampleLoader> loader_;    // of thread_, or of Take's caller without one
  const std::unique_ptr<SampleLoader> counting_;  // loads labels only
  // Last request of CountLabels, and its result.
  std::optional<FeedRequest> counted_;
  int64_t labels_ = 0;

  std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  std::condition_variable changed_;
  std::deque<FeedRequest> expected_ ABSL_GUARDED_BY(mutex_);  // announced, not yet taken
  // Samples of the first requests in expected_.
  std::deque<absl::StatusOr<Samples>> loaded_ ABSL_GUARDED_BY(mutex_);
  // Number of the announcement that these belong to.
  uint64_t announcement_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<std::thread> thread_;  // empty if the device is the host
};

}  // namespace thinwire
