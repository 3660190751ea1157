// The command line of `thinwire tune`.
#pragma once

#include "CLI/CLI.hpp"
#include "coordinator/commands/tune_command.h"

namespace thinwire {

// `flags` outlives `app`.
CLI::App* AddTune(CLI::App* app, TuneFlags* flags);

}  // namespace thinwire
