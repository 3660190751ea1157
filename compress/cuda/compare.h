// Sums over two tensors.
#pragma once

#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// See CodecKernels::Compare. Counts are those of compress/cpu/compare.h; sums are of the same fp64
// products in another order, which data and shape alone fix. Sums of squares differ from the CPU's
// by no more than a few units in the last place for each level of adding: far below 1e-12 of
// themselves; that of x y by as much of the sum of |x y|.
Error CudaCompare(CudaDevice* device, const TensorView& x, const TensorView& y,
                  CodecKernels::Sums* sums);

}  // namespace thinwire
