// The payload of topk and threshold: chosen entries, and where they stood.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/kept.h"
#include "compress/kernels.h"

namespace thinwire {

// InvalidArgument if the payload's memory does not suffice or the tensor, of `total` elements, has
// too many. Takes the arrays of `kept` for its own.
Error WriteEntries(Kept* kept, int64_t total, const CodecSpec& spec, const SparseContext& context,
                   uint8_t* payload, size_t capacity, size_t* bytes, int threads);

Error CpuEntriesDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                       const SparseContext& context, const TensorView& x, int threads);

}  // namespace thinwire
