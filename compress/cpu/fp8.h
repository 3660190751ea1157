// Codec fp8: every element as an 8-bit float of the Open Compute Project (OCP 8-bit Floating Point
// Specification, 2023): e4m3 (largest 448, four significant bits) or e5m2 (57344, three).
//
// As under fp16 the whole tensor is multiplied by a power of two, sent in front, that brings the
// largest magnitude to the upper end of the format. So tiny gradients survive and nothing
// overflows. Rounds to nearest even. The decoder refuses codes that are no finite number in fp32.
#pragma once

#include "compress/cpu/codec.h"

namespace thinwire {

CpuEncode CpuFp8Encode;
CpuDecode CpuFp8Decode;

}  // namespace thinwire
