// Product of a tensor's rows with a matrix.
#pragma once

#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::Multiply.
Error CpuMultiply(const TensorView& x, const TensorView& factor, const TensorView& out,
                  int threads);

}  // namespace thinwire
