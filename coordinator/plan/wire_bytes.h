// What a message takes on the wire, from its payload's length.
#pragma once

#include <cstdint>

#include "compress/spec.h"
#include "tensor/shape.h"

namespace thinwire {

// Serialised frames, with gRPC's prefixes, of a message with that payload in the middle of a run.
int64_t WireBytes(const CodecSpec& codec, const Shape& shape, int64_t payload_bytes);

}  // namespace thinwire
