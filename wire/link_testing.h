// Messages and options for tests of frames and links.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/steady_time.h"
#include "wire/link.h"

namespace thinwire {

// The options of cut 3 in run 77, generation 5. The upstream end receives gradients, the downstream
// end activations.
LinkOptions UpstreamOptions();
LinkOptions DownstreamOptions();

// A training message of that cut with `payload_bytes` pseudorandom bytes; each microbatch has
// bytes of its own.
Message TestMessage(Direction direction, size_t payload_bytes, uint32_t microbatch = 0);

// Every field and byte the same.
bool SameMessage(const Message& a, const Message& b);

// Far enough that only a defect meets it.
SteadyTime TestDeadline();

}  // namespace thinwire
