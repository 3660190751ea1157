// Matrices of low rank.
#pragma once

#include "compress/cuda/codec.h"

namespace thinwire {

// The steps are those of compress/cpu/low_rank.h; the orders of their fp64 sums are not, so that
// factors may differ from the CPU's in their last bits.
CudaEncode CudaLowRankEncode;
// Equal to the CPU's to the last bit.
CudaDecode CudaLowRankDecode;

}  // namespace thinwire
