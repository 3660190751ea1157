// Clipping of a model's gradient where all of it is on one device: the factor is made there, and
// nothing waits for it. The same bits as AddSquares and ClipScale give.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/ops.h"
#include "nn/parameters.h"
#include "tensor/device.h"

namespace thinwire {

class DeviceClip {
 public:
  // `parameters`, of the whole model, `device` and `ops` outlive it.
  static absl::StatusOr<std::unique_ptr<DeviceClip>> New(absl::Span<const Parameter> parameters,
                                                         double clip_norm, Device* device,
                                                         Ops* ops);

  // Makes the factor of the gradients as they are now.
  absl::Status Submit();
  // For an update that is submitted next (GradientScale).
  const float* factor() const { return static_cast<const float*>(factor_.data()); }
  // Behind a Finish of the device. OutOfRange names the parameter with which the sum of squares is
  // no finite number, where the update has changed nothing.
  absl::Status Check() const;

 private:
  DeviceClip(absl::Span<const Parameter> parameters, double clip_norm, Ops* ops);

  const std::vector<const Parameter*> counted_;
  const double clip_norm_;
  Ops* const ops_;
  std::vector<FloatRange> gradients_;
  Tensor factor_;
  Tensor sums_;  // fp64, of each gradient's squares, in memory of Device::host()
};

}  // namespace thinwire
