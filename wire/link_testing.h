// Messages and options for tests of frames and links.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/steady_time.h"
#include "wire/link.h"

namespace thinwire {

// Return the options of cut 3 in run 77, generation 5. The upstream end receives gradients, the
// downstream end activations.
LinkOptions UpstreamOptions();
LinkOptions DownstreamOptions();

// Returns a training message of that cut with `payload_bytes` pseudorandom bytes, which differ from
// microbatch to microbatch.
Message TestMessage(Direction direction, size_t payload_bytes, uint32_t microbatch = 0);

// Returns whether all fields and bytes are equal.
bool SameMessage(const Message& a, const Message& b);

// Returns a deadline that is met only by a defect.
SteadyTime TestDeadline();

}  // namespace thinwire
