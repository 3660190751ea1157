// Sums of two tensors.
#pragma once

#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::Combine.
Error CpuCombine(float a, const TensorView& x, float b, const TensorView& y, const TensorView& out,
                 int threads);

}  // namespace thinwire
