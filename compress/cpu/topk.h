// topk: the entries of largest magnitude of each scope.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/spec.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::TopKEncode and TopKDecode.
Error CpuTopKEncode(const TensorView& x, const CodecSpec& spec, uint8_t* payload, size_t capacity,
                    size_t* bytes);
Error CpuTopKDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                    const TensorView& x);

}  // namespace thinwire
