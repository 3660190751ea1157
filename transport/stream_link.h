// The link that either end of a cut between processes returns; it wraps a stream.
#pragma once

#include <memory>

#include "transport/stream.h"
#include "wire/link.h"

namespace thinwire {

// Makes a link that closes the stream and waits for its end when it is destroyed. It keeps `stream`
// alive, and so the reactor that owns it.
std::unique_ptr<Link> NewStreamLink(std::shared_ptr<GrpcStream> stream);

}  // namespace thinwire
