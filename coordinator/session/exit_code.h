// How a command ends: its exit code, on which scripts rely, and its last words.
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

// Reports an error as every command does, "thinwire: MESSAGE" on stderr, and returns `code`. The
// message may hold what a peer said: a terminal is shown it as Printable has it.
ExitCode Complain(const absl::Status& error, ExitCode code);

// Whose fault it is that a path of a command line cannot be written, or made a folder: the user's
// where the path is wrong or another's, the run's where a disk is full.
ExitCode ExitOfPath(const absl::Status& error);

// Prints a command's result to stdout. Where that fails, complains and returns kExitFailed.
ExitCode PrintResult(std::string_view text);

}  // namespace thinwire
