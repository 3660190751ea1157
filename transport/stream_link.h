// The link that either end of a cut between processes hands out: a stream, and what its end takes.
#pragma once

#include <memory>

#include "transport/stream.h"
#include "wire/link.h"

namespace thinwire {

// When it is destroyed the link closes the stream and waits for its end. It holds on to `stream`,
// and so to the reactor where that owns the stream.
std::unique_ptr<Link> NewStreamLink(std::shared_ptr<GrpcStream> stream);

}  // namespace thinwire
