#include "nn/device_clip.h"

#include "base/status.h"
#include "nn/gradient_norm.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

constexpr int64_t kWordsOfSum = sizeof(double) / sizeof(int32_t);

}  // namespace

DeviceClip::DeviceClip(absl::Span<const Parameter> parameters, double clip_norm, Ops* ops)
    : clip_norm_(clip_norm), ops_(ops) {
  for (const Parameter* parameter : CountedParameters(parameters)) {
    counted_.push_back(parameter->spec.name);
    gradients_.push_back({Floats(parameter->gradient), parameter->gradient.elements()});
  }
}

absl::StatusOr<std::unique_ptr<DeviceClip>> DeviceClip::New(absl::Span<const Parameter> parameters,
                                                            double clip_norm, Device* device,
                                                            Ops* ops) {
  std::unique_ptr<DeviceClip> clip(new DeviceClip(parameters, clip_norm, ops));
  const auto count = static_cast<int64_t>(clip->counted_.size());
  ASSIGN_OR_RETURN(clip->factor_, Tensor::Allocate(device, DType::kF32, {1}));
  ASSIGN_OR_RETURN(clip->sums_,
                   Tensor::Allocate(device->host(), DType::kI32, {kWordsOfSum * count}));
  return clip;
}

absl::Status DeviceClip::Submit() {
  NormClip clip;
  clip.ranges = gradients_.data();
  clip.count = static_cast<int64_t>(gradients_.size());
  clip.clip_norm = clip_norm_;
  clip.sums = static_cast<double*>(sums_.data());
  clip.factor = Floats(factor_);
  return ToStatus(ops_->ClipByNorm(clip));
}

absl::Status DeviceClip::Check() const {
  double sum = 0;
  return AddSquaresInOrder(counted_, {static_cast<const double*>(sums_.data()), counted_.size()},
                           &sum);
}

}  // namespace thinwire
