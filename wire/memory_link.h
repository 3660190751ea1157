// A cut inside a process: two links that hand each other the frames of a wire.
#pragma once

#include <memory>
#include <utility>

#include "wire/link.h"

namespace thinwire {

// The two ends of a cut inside one process: the same frames, checks and bytes as on a wire.
std::pair<std::unique_ptr<Link>, std::unique_ptr<Link>> NewMemoryLinks(
    const LinkOptions& upstream, const LinkOptions& downstream);

}  // namespace thinwire
