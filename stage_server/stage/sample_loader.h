// Loads and augments samples in the order that (seed, epoch) fixes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "proto/boundary.pb.h"
#include "tensor/tensor.h"

namespace thinwire {

struct FeedSpec {
  uint64_t data_seed = 0;
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

struct LoadedSamples {
  // Host memory. Images are fp32 [samples, ...], tokens int32 [samples, positions]. Empty unless
  // the spec wants `inputs`.
  Tensor inputs;
  // Sample after sample: labels_per_sample() of each, or one for each position.
  std::vector<int32_t> labels;
  uint64_t digest = 0;  // of the samples' ids, whether whole or in slices
};

// Not thread-safe.
class SampleLoader {
 public:
  // Makes a loader; `data` and `host`, which allocates inputs, outlive it.
  SampleLoader(const FeedSpec& spec, const DataSplits* data, Device* host)
      : spec_(spec), data_(data), host_(host) {}

  absl::StatusOr<LoadedSamples> Load(const FeedRequest& request);

 private:
  void FindIds(const FeedRequest& request, const Dataset& data);
  Dataset::Augmentation AugmentationFor(const FeedRequest& request, const Dataset& data,
                                        int64_t id) const;
  std::vector<int32_t> Labels(const FeedRequest& request, const Dataset& data) const;
  absl::StatusOr<Tensor> Images(const FeedRequest& request, const Dataset& data) const;
  absl::StatusOr<Tensor> Tokens(const FeedRequest& request, const Dataset& data) const;

  const FeedSpec spec_;
  const DataSplits* const data_;
  Device* const host_;
  std::optional<uint32_t> epoch_;  // epoch whose order is in `order_`
  std::vector<int64_t> order_;
  std::vector<int64_t> ids_;  // of the current request
};

}  // namespace thinwire
