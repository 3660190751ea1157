// none, fp16 and bf16: every element is sent, in its own or a shorter type.
//
// They carry NaN and infinity. fp16 multiplies the whole tensor by a power of two, sent in front,
// so that the largest finite value fits: tiny gradients survive and nothing finite overflows. bf16
// has fp32's range; only values above 3.39e38 round to infinity.
#pragma once

#include <memory>

#include "compress/codec.h"

namespace thinwire {

// `spec.kind` is kNone, kFp16 or kBf16.
std::unique_ptr<Codec> NewCastCodec(const CodecSpec& spec, CodecKernels* kernels);

}  // namespace thinwire
