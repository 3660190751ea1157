// Comparison of two tensors, for distortion.
#pragma once

#include "compress/kernels.h"

namespace thinwire {

// See CodecKernels::Compare. Sums are taken in eight interleaved lanes over each stretch of
// kMostOfOneThread elements, one stretch after the other, so they are the same on every machine.
Error CpuCompare(const TensorView& x, const TensorView& y, CodecKernels::Sums* sums, int threads);

}  // namespace thinwire
