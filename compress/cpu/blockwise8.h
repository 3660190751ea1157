// Codec blockwise8, SWARM's wire format (arXiv 2301.11913): an absmax per block of elements, and a
// byte per element. The byte names the entry nearest to fp32(x / absmax), the lower one in a tie,
// of a fixed codebook of 256 entries on [-1, 1].
//
// The codebook is that of dynamic tree quantisation (Dettmers, arXiv 1511.04561, and block-wise in
// arXiv 2110.02861): seven decades, each with twice the entries of the one below. So small values
// keep a relative precision that uniform grids lack.
#pragma once

#include "compress/cpu/codec.h"

namespace thinwire {

CpuEncode CpuBlockwise8Encode;
CpuDecode CpuBlockwise8Decode;

}  // namespace thinwire
