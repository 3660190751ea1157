// What a command line means that names a command or a flag that is not there.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace thinwire {

// Says of `app`, whose last parse has failed, which argument it does not know and what was probably
// meant: the nearest command or flag or, where the command takes --set, the field of that name.
// Empty if no argument is unknown.
std::string UnknownArgument(const CLI::App& app);

}  // namespace thinwire
