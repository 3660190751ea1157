// `thinwire submit`, `watch`, `list` and `cancel`: what is asked of a `thinwire serve`.
#pragma once

#include <string>
#include <vector>

#include "coordinator/commands/serve_command.h"
#include "coordinator/session/interruption.h"
#include "security/security.h"

namespace thinwire {

// What the command line says.
struct QueueFlags {
  std::string server = kQueueAddress;  // host:port
  SecurityOptions security;
  std::vector<std::string> experiments;  // submit: paths of files
  std::vector<std::string> overrides;    // submit: path=value, of all of them
  std::string run;                       // watch, cancel: an id
  std::string format = "text";           // list: text or json
};

// Each says what went wrong on stderr and returns the process's exit code (exit_code.h): 2 for what
// the server refuses, 1 for a server that cannot be reached or fails.

// Prints the ids of the runs, a line each.
int SubmitCommand(const QueueFlags& flags, Interruption* interruption);
// Prints what the run prints, to its end, and returns the run's exit code.
int WatchCommand(const QueueFlags& flags, Interruption* interruption);
// Prints all runs, a line each.
int ListCommand(const QueueFlags& flags, Interruption* interruption);
// Returns 0 when the run has ended, however it did; prints how.
int CancelCommand(const QueueFlags& flags, Interruption* interruption);

}  // namespace thinwire
