// uniform on a tensor that was rotated first: random signs, then a Hadamard transform per block, so
// that an outlier's length is shared by its block and does not set the range of all others
// (Suresh et al., ICML 2017, arXiv 1611.00429).
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/spec.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::UniformEncode and UniformDecode, with Rotation::kHadamard.
Error CpuRotatedUniformEncode(const TensorView& x, const CodecSpec& spec, uint64_t random_key,
                              uint8_t* payload, size_t capacity, size_t* bytes, int threads);
Error CpuRotatedUniformDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                              const TensorView& x, int threads);

}  // namespace thinwire
