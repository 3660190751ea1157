// Suggestions for a command or a flag that does not exist.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace thinwire {

// Returns which argument `app`, whose last parse has failed, does not know, and what was probably
// meant. That is the nearest command or flag or, if the command takes --set, the field of that
// name. Empty if no argument is unknown.
std::string UnknownArgument(const CLI::App& app);

}  // namespace thinwire
