// The payload of topk and threshold: chosen entries, and where they stood, by bitmap, packed
// indices or Rice-coded gaps, whichever is smallest for the message. Where an entry stood is, with
// support, its rank among the supported.
#pragma once

#include <cstdint>

#include "compress/cpu/codec.h"
#include "compress/cpu/kept.h"

namespace thinwire {

// InvalidArgument if the payload's memory does not suffice or the tensor, of `total` elements, has
// too many. Takes the arrays of `kept` for its own.
Error WriteEntries(Kept* kept, int64_t total, const CodecSpec& spec, const KernelContext& context,
                   const PayloadBuffer& payload, int threads);

CpuDecode CpuEntriesDecode;

}  // namespace thinwire
