// Codec uniform with rotation hadamard. The tensor is first rotated by random signs and an
// orthonormal Hadamard transform of each block. So an outlier's magnitude is shared by its block
// and does not set the range of all others (Suresh et al., ICML 2017, arXiv 1611.00429).
//
// The payload begins with the random key whose numbers are the signs. The rest is uniform's payload
// of the rotated tensor in fp32, which is rounded by the numbers of the key's complement.
#pragma once

#include "compress/cpu/codec.h"

namespace thinwire {

CpuEncode CpuRotatedUniformEncode;
CpuDecode CpuRotatedUniformDecode;

}  // namespace thinwire
