// fp8: every element as an 8-bit float of the Open Compute Project (OCP 8-bit Floating Point
// Specification, 2023): e4m3 (largest 448, four significant bits) or e5m2 (57344, three).
//
// As under fp16 the whole tensor is multiplied by a power of two, sent in front, that brings the
// largest magnitude to the upper end of the format: tiny gradients survive and nothing overflows.
#pragma once

#include <memory>

#include "compress/codec.h"

namespace thinwire {

std::unique_ptr<Codec> NewFp8Codec(const CodecSpec& spec, CodecKernels* kernels);

}  // namespace thinwire
