// The CPU's low_rank kernels. Contracts: compress/kernels.h.
#pragma once

#include "compress/spec.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

Error CpuLowRankEncode(const TensorView& x, const CodecSpec& spec, const float* warm_start,
                       uint8_t* payload, size_t capacity, size_t* bytes);
Error CpuLowRankDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                       const TensorView& x);

}  // namespace thinwire
