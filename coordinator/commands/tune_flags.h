// Flags of `thinwire tune`.
#pragma once

#include "CLI/CLI.hpp"
#include "coordinator/commands/tune_command.h"

namespace thinwire {

// Adds the command to `app`. `flags` must outlive `app`.
CLI::App* AddTune(CLI::App* app, TuneFlags* flags);

}  // namespace thinwire
