// Links for a cut inside a process: two ends that hand each other frames.
#pragma once

#include <memory>
#include <utility>

#include "wire/link.h"

namespace thinwire {

// Makes the two ends of a cut inside one process. They exchange the same frames, checks and bytes
// as on a wire.
std::pair<std::unique_ptr<Link>, std::unique_ptr<Link>> NewMemoryLinks(
    const LinkOptions& upstream, const LinkOptions& downstream);

}  // namespace thinwire
