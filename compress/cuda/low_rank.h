// Codec low_rank.
#pragma once

#include "compress/cuda/codec.h"

namespace thinwire {

// Takes the steps of compress/cpu/low_rank.h, but adds fp64 sums in other orders, so that factors
// may differ from the CPU's in their last bits.
CudaEncode CudaLowRankEncode;
// Equal to the CPU's to the last bit.
CudaDecode CudaLowRankDecode;

}  // namespace thinwire
