// Identity of the clock that SteadyTime reads.
#pragma once

#include <string>

namespace thinwire {

// Returns an id that is equal for processes that read the same clock: those of one boot of one
// kernel, in the same time namespace. Empty if the system does not tell.
std::string SteadyClockId();

}  // namespace thinwire
