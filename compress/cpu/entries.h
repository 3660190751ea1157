// Payload of topk and threshold: the kept entries, and where they stood. The positions are a
// bitmap, packed indices or Rice-coded gaps, whichever is smallest for the message. With support, a
// position is the entry's rank among the supported ones.
#pragma once

#include <cstdint>

#include "compress/cpu/codecs.h"
#include "compress/cpu/kept.h"

namespace thinwire {

// Writes the payload of `kept`, whose arrays it may change, for a tensor of `total` elements, which
// CheckElements has accepted. InvalidArgument if the payload's memory does not suffice or the
// values' range overflows fp32 (uniform).
Error WriteEntries(Kept* kept, int64_t total, const CodecSpec& spec, const KernelContext& context,
                   const PayloadBuffer& payload, int threads);

CpuDecode CpuEntriesDecode;

}  // namespace thinwire
