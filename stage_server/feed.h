// Hands the first stage its inputs and the last stage its labels, in the order that (seed, epoch)
// fixes.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "stage_server/local_stage.h"

namespace thinwire {

struct FeedSpec {
  uint64_t data_seed = 0;
  Shuffle shuffle;
  AugmentKind augment = AugmentKind::kPerEpoch;
  DType compute = DType::kF32;
  bool inputs = false;  // fill Samples::inputs (first stage)
  bool labels = false;  // fill Samples::labels (last stage)
};

class Feed {
 public:
  // `data` outlives the feed.
  Feed(const FeedSpec& spec, const DataSplits* data, const Backend& backend)
      : spec_(spec), data_(data), backend_(backend) {}

  // Samples [first, last) of the epoch's order: shuffled and augmented in training, as they stand
  // in the training set when recalibrating and in the test set when evaluating.
  absl::StatusOr<Samples> Take(const Work& work, const SampleRange& range);

 private:
  absl::StatusOr<Tensor> Inputs(const Dataset& data, const Work& work);

  const FeedSpec spec_;
  const DataSplits* const data_;
  const Backend backend_;
  uint32_t epoch_ = 0;  // whose order `order_` is
  std::vector<int64_t> order_;
  std::vector<int64_t> ids_;  // of the microbatch at hand
};

}  // namespace thinwire
