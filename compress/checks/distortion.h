// How lossy a message was, as numbers that tests, metrics and reports share.
#pragma once

#include "absl/status/statusor.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

// Neither error nor cosine is a number where a tensor has NaN.
struct Distortion {
  double relative_error = 0;    // ||x - y|| / ||x||; 0 when both are zero, infinity when only x is
  double cosine = 1;            // <x, y> / (||x|| ||y||); 1 when both are zero, 0 when one is
  double nonzero_fraction = 0;  // of y
};

// `x` is what the codec got, `y` what the receiver uses; same shape and device.
absl::StatusOr<Distortion> MeasureDistortion(const Tensor& x, const Tensor& y,
                                             CodecKernels* kernels);

}  // namespace thinwire
