// Codec uniform: every element as a code of 1 to 8 bits, on a grid over the range of its scope.
//
//   min_max      x^ = q / (2^b - 1) * (max - min) + min   (arXiv 2401.07788, "simple")
//   max_abs      x^ = q / (2^(b-1) - 1) * max|x|          symmetric, an odd number of levels
//   fixed_point  x^ = q / 2^(b-1) * s, s = max|x| in fp16, q in [-2^(b-1), 2^(b-1) - 1]  (AC-SGD)
//
// A constant scope is exact under min_max and max_abs, a constant tensor under all three. The fp16
// scales are of values multiplied by one power of two per message, so tiny gradients survive.
#pragma once

#include "compress/cpu/codec.h"

namespace thinwire {

// Without rotation; rotated_uniform.h has the codec with it.
CpuEncode CpuUniformEncode;
CpuDecode CpuUniformDecode;

}  // namespace thinwire
