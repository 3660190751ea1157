// Weighted sums of a message's rows.
#pragma once

#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// See CodecKernels::CombineRows. Equal to compress/cpu/combine.h to the last bit.
Error CudaCombineRows(CudaDevice* device, const RowSums& sums);

}  // namespace thinwire
