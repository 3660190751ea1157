// Rate that a message of ecsq takes however coarse its step is.
#pragma once

#include "absl/status/statusor.h"
#include "compress/kernels.h"
#include "compress/spec.h"
#include "tensor/shape.h"

namespace thinwire {

// Returns bits per element of a message of normally distributed values (a fixed draw) with the
// coarsest step, whose codes are nearly all zero: the cost of steps, tables and rANS states. For
// rotated messages it measures the rotated tensor's payload, without axes. With a support, of which
// nothing is known, it assumes that half of the elements are supported. `spec` is ecsq with a rate.
// `kernels` are the host's.
absl::StatusOr<double> MeasureLeastRate(const CodecSpec& spec, const Shape& shape,
                                        CodecKernels* kernels);

}  // namespace thinwire
