#include "stage_server/stage/sample_loader.h"

#include <algorithm>
#include <numeric>

#include "base/status.h"
#include "wire/message_kind.h"

namespace thinwire {
namespace {

// Returns the range of a sample's tokens or labels that the request wants.
SampleRange WantedOf(const std::vector<int32_t>& sample, const FeedRequest& request) {
  return request.positions.value_or(SampleRange{0, static_cast<int64_t>(sample.size())});
}

}  // namespace

absl::StatusOr<LoadedSamples> SampleLoader::Load(const FeedRequest& request) {
  const bool from_train = ReadsTrainingData(request.phase);
  const Dataset& data = from_train ? *data_->train : *data_->test;
  FindIds(request, data);
  LoadedSamples samples;
  samples.digest = SampleDigest(ids_);
  if (spec_.labels) samples.labels = Labels(request, data);
  if (spec_.inputs) {
    ASSIGN_OR_RETURN(samples.inputs,
                     data.is_text() ? Tokens(request, data) : Images(request, data));
  }
  return samples;
}

void SampleLoader::FindIds(const FeedRequest& request, const Dataset& data) {
  const SampleRange& range = request.range;
  ids_.resize(range.last - range.first);
  if (!IsTrainingPass(request.phase)) {
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
  if (!IsTrainingPass(request.phase)) return {};
  return AugmentationOf(data, spec_.augment, spec_.data_seed, request.epoch, id);
}

std::vector<int32_t> SampleLoader::Labels(const FeedRequest& request, const Dataset& data) const {
  std::vector<int32_t> labels, sample(data.labels_per_sample());
  const SampleRange kept = WantedOf(sample, request);
  labels.reserve(ids_.size() * (kept.last - kept.first));
  for (const int64_t id : ids_) {
    data.Labels(id, AugmentationFor(request, data, id), absl::MakeSpan(sample));
    labels.insert(labels.end(), sample.begin() + kept.first, sample.begin() + kept.last);
  }
  return labels;
}

absl::StatusOr<Tensor> SampleLoader::Images(const FeedRequest& request, const Dataset& data) const {
  const Shape shape = data.sample_shape().WithBatch(static_cast<int64_t>(ids_.size()));
  const int64_t each = data.sample_shape().elements();
  ASSIGN_OR_RETURN(Tensor images, Tensor::Allocate(host_, DType::kF32, shape));
  for (size_t i = 0; i < ids_.size(); ++i) {
    data.Load(ids_[i], AugmentationFor(request, data, ids_[i]),
              images.floats().subspan(i * each, each));
  }
  return images;
}

absl::StatusOr<Tensor> SampleLoader::Tokens(const FeedRequest& request, const Dataset& data) const {
  std::vector<int32_t> sample(data.sample_shape().elements());
  const SampleRange kept = WantedOf(sample, request);
  const Shape shape = {static_cast<int64_t>(ids_.size()), kept.last - kept.first};
  ASSIGN_OR_RETURN(Tensor tokens, Tensor::Allocate(host_, DType::kI32, shape));
  auto* to = static_cast<int32_t*>(tokens.data());
  for (const int64_t id : ids_) {
    data.LoadTokens(id, AugmentationFor(request, data, id), absl::MakeSpan(sample));
    to = std::copy(sample.begin() + kept.first, sample.begin() + kept.last, to);
  }
  return tokens;
}

}  // namespace thinwire
