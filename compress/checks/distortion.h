// Measures of how lossy a message was, shared by tests, metrics and reports.
#pragma once

#include "absl/status/statusor.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

// Distortion of one message. With NaN in a tensor, error and cosine are not numbers.
struct Distortion {
  double relative_error = 0;    // ||x - y|| / ||x||; 0 when both are zero, infinity when only x is
  double cosine = 1;            // <x, y> / (||x|| ||y||); 1 when both are zero, 0 when one is
  double nonzero_fraction = 0;  // share of y's elements that are not zero
};

// Measures the distortion. `x` is what the codec got, `y` what the receiver uses; both have the
// same shape and device.
absl::StatusOr<Distortion> MeasureDistortion(const Tensor& x, const Tensor& y,
                                             CodecKernels* kernels);

}  // namespace thinwire
