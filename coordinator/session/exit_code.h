// Exit codes of commands, on which scripts rely, and how commands report errors.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace thinwire {

enum ExitCode {
  kExitDone = 0,
  kExitFailed = 1,  // the run failed
  kExitUsage = 2,   // wrong flags or experiment file
  kExitInterrupted = 130,
};

// Reports an error as every command does, "thinwire: MESSAGE" on stderr, and returns `code`. A peer
// may have contributed to the message, so a terminal gets it as Printable returns it.
ExitCode Complain(const absl::Status& error, ExitCode code);

// Returns whose fault it is that a path of a command line cannot be written or made a folder. It is
// the user's if the path is wrong or somebody else's, the run's if a disk is full.
ExitCode ExitOfPath(const absl::Status& error);

// Prints a command's result to stdout. If that fails, complains and returns kExitFailed.
ExitCode PrintResult(std::string_view text);

}  // namespace thinwire
