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
  if (spec_.labels) {
    for (int64_t id : ids_) samples.labels.push_back(data.label(id));
  }
  if (spec_.inputs) {
    ASSIGN_OR_RETURN(samples.images, Images(request, data));
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

absl::StatusOr<Tensor> SampleLoader::Images(const FeedRequest& request, const Dataset& data) {
  const Shape shape = data.sample_shape().WithBatch(static_cast<int64_t>(ids_.size()));
  const int64_t sample_elements = data.sample_shape().elements();
  ASSIGN_OR_RETURN(Tensor images, Tensor::Allocate(host_, DType::kF32, shape));
  for (size_t i = 0; i < ids_.size(); ++i) {
    Dataset::Augmentation augmentation;
    if (request.phase == PHASE_TRAIN) {
      augmentation = AugmentationOf(data, spec_.augment, spec_.data_seed, request.epoch, ids_[i]);
    }
    data.Load(ids_[i], augmentation, images.floats().subspan(i * sample_elements, sample_elements));
  }
  return images;
}

}  // namespace thinwire
