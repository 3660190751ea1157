// Codec ecsq: entropy-coded scalar quantisation. Every element becomes an unbounded whole number of
// steps; a step is a multiple of the root mean square of its scope. The entropy coder
// (compress/entropy/frame.h) makes frequent numbers cheap. Here each number is a byte, and the few
// that have no byte follow behind.
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
