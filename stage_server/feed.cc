#include "stage_server/feed.h"

#include <numeric>
#include <utility>

#include "base/status.h"
#include "tensor/cpu/device.h"

namespace thinwire {

absl::StatusOr<Samples> Feed::Take(const Work& work, const SampleRange& range) {
  const bool training = work.phase == PHASE_TRAIN;
  const bool from_train = training || work.phase == PHASE_RECALIBRATE;
  const Dataset& data = from_train ? *data_->train : *data_->test;
  ids_.resize(range.last - range.first);
  if (training) {
    if (epoch_ != work.epoch) {
      order_ = EpochOrder(spec_.shuffle, work.epoch, data.size());
      epoch_ = work.epoch;
    }
    std::copy(order_.begin() + range.first, order_.begin() + range.last, ids_.begin());
  } else {
    std::iota(ids_.begin(), ids_.end(), range.first);
  }
  Samples samples;
  samples.digest = SampleDigest(ids_);
  if (spec_.labels) {
    for (int64_t id : ids_) samples.labels.push_back(data.label(id));
  }
  if (spec_.inputs) {
    ASSIGN_OR_RETURN(samples.inputs, Inputs(data, work));
  }
  return samples;
}

absl::StatusOr<Tensor> Feed::Inputs(const Dataset& data, const Work& work) {
  const Shape shape = data.sample_shape().WithBatch(static_cast<int64_t>(ids_.size()));
  const int64_t sample_elements = data.sample_shape().elements();
  ASSIGN_OR_RETURN(Tensor images, Tensor::Allocate(CpuDevice(), DType::kF32, shape));
  for (size_t i = 0; i < ids_.size(); ++i) {
    Dataset::Augmentation augmentation;
    if (work.phase == PHASE_TRAIN) {
      augmentation = AugmentationOf(data, spec_.augment, spec_.data_seed, work.epoch, ids_[i]);
    }
    data.Load(ids_[i], augmentation, images.floats().subspan(i * sample_elements, sample_elements));
  }
  if (spec_.compute == DType::kF32 && backend_.device->is_host()) return images;
  ASSIGN_OR_RETURN(Tensor inputs, Tensor::Allocate(backend_.device, spec_.compute, shape));
  if (!backend_.device->is_host()) {
    ASSIGN_OR_RETURN(Tensor copied, Tensor::Allocate(backend_.device, DType::kF32, shape));
    RETURN_IF_ERROR(
        ToStatus(backend_.device->CopyFromHost(copied.data(), images.data(), images.bytes())));
    images = std::move(copied);
  }
  RETURN_IF_ERROR(ToStatus(backend_.ops->Convert(images.view(), inputs.view())));
  return inputs;
}

}  // namespace thinwire
