// Codecs none, fp16 and bf16: every element is sent, in its own or a shorter type.
//
// They carry NaN and infinity. fp16 multiplies the whole tensor by a power of two, sent in front,
// so that the largest finite value fits. So tiny gradients survive and nothing finite overflows.
// bf16 has the range of fp32; only values above 3.39e38 round to infinity.
#pragma once

#include "compress/cpu/codec.h"

namespace thinwire {

CpuEncode CpuCastEncode;
CpuDecode CpuCastDecode;

// See CodecKernels::CastTo and CastFrom.
Error CpuCastTo(DType wire, const TensorView& x, const PayloadBuffer& payload, int threads);
Error CpuCastFrom(const PayloadView& payload, DType wire, const TensorView& x, int threads);

}  // namespace thinwire
