// The rate that a message of ecsq takes however coarse its step is.
#pragma once

#include "absl/status/statusor.h"
#include "compress/kernels.h"
#include "compress/spec.h"
#include "tensor/shape.h"

namespace thinwire {

// Bits for each element of a message of normally distributed values, a fixed draw, whose codes are
// next to all zero: what steps, tables and states take. Of rotated messages what counts for their
// rate; with a support, of which nothing is known, as if half of the elements were in it. `spec`:
// ecsq with a rate. `kernels`: of the host.
absl::StatusOr<double> MeasureLeastRate(const CodecSpec& spec, const Shape& shape,
                                        CodecKernels* kernels);

}  // namespace thinwire
