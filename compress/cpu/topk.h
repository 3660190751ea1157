// The CPU's topk: see kernels.h for the contract, docs/compression.md for the payload.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"

namespace thinwire {

Error CpuTopKEncode(const TensorView& x, const CodecSpec& spec, const SparseContext& context,
                    uint8_t* payload, size_t capacity, size_t* bytes, int threads);

}  // namespace thinwire
