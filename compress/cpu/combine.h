// Weighted sums of a message's rows.
#pragma once

#include "compress/kernels.h"
#include "tensor/error.h"

namespace thinwire {

// See CodecKernels::CombineRows.
Error CpuCombineRows(const RowSums& sums, int threads);

}  // namespace thinwire
