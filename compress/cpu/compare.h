// Two tensors side by side, for distortion.
#pragma once

#include "compress/kernels.h"

namespace thinwire {

// See CodecKernels::Compare. Sums are of eight interleaved lanes of each stretch of
// kMostOfOneThread elements, one stretch after the other: the same on every machine.
Error CpuCompare(const TensorView& x, const TensorView& y, CodecKernels::Sums* sums, int threads);

}  // namespace thinwire
