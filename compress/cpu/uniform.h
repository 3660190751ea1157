// uniform: a grid of 2^bits levels over the range of each scope.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/spec.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::UniformEncode and UniformDecode.
Error CpuUniformEncode(const TensorView& x, const CodecSpec& spec, uint64_t random_key,
                       uint8_t* payload, size_t capacity, size_t* bytes, int threads);
Error CpuUniformDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                       const TensorView& x, int threads);

}  // namespace thinwire
