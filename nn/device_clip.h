// Clips a model's gradient where all of it is on one device. The device computes the factor and
// nothing waits for it. It has the same bits as AddSquares and ClipScale give.
#pragma once

#include <memory>
#include <string>
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
  // Makes an object for the parameters of a whole model; all pointers and `parameters` outlive it.
  static absl::StatusOr<std::unique_ptr<DeviceClip>> New(absl::Span<const Parameter> parameters,
                                                         double clip_norm, Device* device,
                                                         Ops* ops);

  // Submits the computation of the factor from the present gradients.
  absl::Status Submit();
  // Returns the factor in device memory, for the update submitted next (GradientScale).
  const float* factor() const { return static_cast<const float*>(factor_.data()); }
  // Returns OutOfRange if the sum of squares is not finite; it names the parameter at which that
  // happened. The update has then changed nothing. Called after a Finish of the device.
  absl::Status Check() const;

 private:
  DeviceClip(absl::Span<const Parameter> parameters, double clip_norm, Ops* ops);

  std::vector<std::string> counted_;  // names of parameters
  const double clip_norm_;
  Ops* const ops_;
  std::vector<FloatRange> gradients_;
  Tensor factor_;
  Tensor sums_;  // fp64 sum of squares of each gradient, in memory of Device::host()
};

}  // namespace thinwire
