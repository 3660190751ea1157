#include "stage_server/stage/sample_loader.h"

#include <algorithm>
#include <numeric>

#include "base/status.h"

namespace thinwire {

absl::StatusOr<LoadedSamples> SampleLoader::Load(const FeedRequest& request) {
  const bool from_train = request.phase == PHASE_TRAIN || request.phase == PHASE_RECALIBRATE;
  const Dataset& data = from_train ? *data_->train : *data_->test;
  FindIds(request, data);
  LoadedSamples samples;
  samples.digest = SampleDigest(ids_);
  if (spec_.labels) samples.labels = Labels(request, data);
  if (spec_.inputs) {
    ASSIGN_OR_RETURN(samples.inputs, Inputs(request, data));
  }
  return samples;
}

void SampleLoader::FindIds(const FeedRequest& request, const Dataset& data) {
  const SampleRange& range = request.range;
  ids_.resize(range.last - range.first);
  if (request.phase != PHASE_TRAIN) {
    std::iota(ids_.begin(), ids_.end(), range.first);
    return;
  }
  if (epoch_ != request.epoch) {
    order_ = EpochOrder(spec_.shuffle, request.epoch, data.size());
    epoch_ = request.epoch;
  }
  std::copy(order_.begin() + range.first, order_.begin() + range.last, ids_.begin());
}

Dataset::Augmentation SampleLoader::AugmentationFor(const FeedRequest& request, const Dataset& data,
                                                    int64_t id) const {
  if (request.phase != PHASE_TRAIN) return {};
  return AugmentationOf(data, spec_.augment, spec_.data_seed, request.epoch, id);
}

std::vector<int32_t> SampleLoader::Labels(const FeedRequest& request, const Dataset& data) const {
  const int64_t each = data.labels_per_sample();
  std::vector<int32_t> labels(ids_.size() * each);
  for (size_t i = 0; i < ids_.size(); ++i) {
    data.Labels(ids_[i], AugmentationFor(request, data, ids_[i]),
                absl::MakeSpan(labels).subspan(i * each, each));
  }
  return labels;
}

absl::StatusOr<Tensor> SampleLoader::Inputs(const FeedRequest& request, const Dataset& data) const {
  const Shape shape = data.sample_shape().WithBatch(static_cast<int64_t>(ids_.size()));
  const int64_t each = data.sample_shape().elements();
  const DType type = data.is_text() ? DType::kI32 : DType::kF32;
  ASSIGN_OR_RETURN(Tensor inputs, Tensor::Allocate(host_, type, shape));
  for (size_t i = 0; i < ids_.size(); ++i) {
    const Dataset::Augmentation augmentation = AugmentationFor(request, data, ids_[i]);
    if (data.is_text()) {
      int32_t* tokens = static_cast<int32_t*>(inputs.data()) + i * each;
      data.LoadTokens(ids_[i], augmentation, absl::MakeSpan(tokens, each));
    } else {
      data.Load(ids_[i], augmentation, inputs.floats().subspan(i * each, each));
    }
  }
  return inputs;
}

}  // namespace thinwire
