// Flags of `thinwire serve` and of the commands that ask it.
#pragma once

#include "CLI/CLI.hpp"
#include "coordinator/commands/queue_command.h"
#include "coordinator/commands/serve_command.h"

namespace thinwire {

CLI::App* AddServe(CLI::App* app, ServeFlags* flags);

// The commands. They share one set of flags, as only one command is run.
struct QueueCommands {
  CLI::App *submit, *watch, *list, *cancel;
};
QueueCommands AddQueueCommands(CLI::App* app, QueueFlags* flags);

}  // namespace thinwire
