// The CPU's randomk: see kernels.h for the contract, docs/compression.md for the payload.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"

namespace thinwire {

Error CpuRandomKEncode(const TensorView& x, const CodecSpec& spec, const SparseContext& context,
                       uint8_t* payload, size_t capacity, size_t* bytes, int threads);
Error CpuRandomKDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                       const SparseContext& context, const TensorView& x, int threads);

}  // namespace thinwire
