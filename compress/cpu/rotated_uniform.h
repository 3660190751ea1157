// uniform with rotation hadamard: a tensor that was rotated first, by random signs and an
// orthonormal Hadamard transform of each block, so that an outlier's length is shared by its block
// and does not set the range of all others (Suresh et al., ICML 2017, arXiv 1611.00429).
//
// The payload begins with the random key, whose numbers are the signs; the rest is uniform's of the
// rotated tensor in fp32, its rounding by the numbers of the key's complement.
#pragma once

#include "compress/cpu/codec.h"

namespace thinwire {

CpuEncode CpuRotatedUniformEncode;
CpuDecode CpuRotatedUniformDecode;

}  // namespace thinwire
