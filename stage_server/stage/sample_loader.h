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

// Samples [range.first, range.last) of the epoch's order: shuffled and augmented in training, as
// they stand in the training set when recalibrating and in the test set when evaluating.
struct FeedRequest {
  Phase phase = PHASE_TRAIN;
  uint32_t epoch = 0;  // training
  SampleRange range;

  friend bool operator==(const FeedRequest& a, const FeedRequest& b) {
    return a.phase == b.phase && a.epoch == b.epoch && a.range.first == b.range.first &&
           a.range.last == b.range.last;
  }
};

struct LoadedSamples {
  Tensor images;  // fp32, [samples, ...], in memory of the host; empty without `inputs`
  std::vector<int32_t> labels;
  uint64_t digest = 0;
};

// One thread at a time.
class SampleLoader {
 public:
  // `data` and `host`, in whose memory images are put, outlive the loader.
  SampleLoader(const FeedSpec& spec, const DataSplits* data, Device* host)
      : spec_(spec), data_(data), host_(host) {}

  absl::StatusOr<LoadedSamples> Load(const FeedRequest& request);

 private:
  void FindIds(const FeedRequest& request, const Dataset& data);
  absl::StatusOr<Tensor> Images(const FeedRequest& request, const Dataset& data);

  const FeedSpec spec_;
  const DataSplits* const data_;
  Device* const host_;
  std::optional<uint32_t> epoch_;  // whose order `order_` is
  std::vector<int64_t> order_;
  std::vector<int64_t> ids_;  // of the request at hand
};

}  // namespace thinwire
