// Comparison of two tensors by sums over them.
#pragma once

#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// See CodecKernels::Compare. Counts equal those of compress/cpu/compare.h. Sums are of the same
// fp64 products in another order, which data and shape alone fix. Each level of adding moves a sum
// of squares from the CPU's by at most a few units in the last place: in all far below 1e-12 of
// itself. The sum of x y differs by as large a share of the sum of |x y|.
Error CudaCompare(CudaDevice* device, const TensorView& x, const TensorView& y,
                  CodecKernels::Sums* sums);

}  // namespace thinwire
