// Flags of `thinwire sweep` and `thinwire compare`.
#pragma once

#include "CLI/CLI.hpp"
#include "coordinator/commands/compare_command.h"
#include "coordinator/commands/sweep_command.h"

namespace thinwire {

// Adds the command to `app`. `flags` must outlive `app`.
CLI::App* AddSweep(CLI::App* app, SweepFlags* flags);
CLI::App* AddCompare(CLI::App* app, CompareFlags* flags);

}  // namespace thinwire
