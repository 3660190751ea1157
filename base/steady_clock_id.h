// Whose clock SteadyTime reads.
#pragma once

#include <string>

namespace thinwire {

// Processes with the same one read the same clock: those of one boot of one kernel, in the same
// time namespace. Empty where the system does not say.
std::string SteadyClockId();

}  // namespace thinwire
