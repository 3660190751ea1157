// ecsq: entropy-coded scalar quantisation. Every element as a whole number of steps, unbounded; a
// step is a multiple of the root mean square of its scope. What the numbers cost is the entropy
// coder's business (compress/entropy/frame.h): here each is a byte, and the few that have none
// follow behind.
//
//   nearest, dead_zone  x^ = sign(q) (|q| + mean_|q|) step    reconstruction points at cells' means
//                                                             (Lloyd 1957; Max 1960)
//   stochastic          x^ = q step                           unbiased
//   dither              x^ = (q - u) step                     u from a stream that both ends draw
//                                                             (Roberts 1962; Ziv 1985)
#pragma once

#include "compress/cpu/codec.h"

namespace thinwire {

CpuEncode CpuEcsqEncode;
CpuDecode CpuEcsqDecode;

}  // namespace thinwire
