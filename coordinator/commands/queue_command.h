// `thinwire submit`, `watch`, `list` and `cancel`: requests to a `thinwire serve`.
#pragma once

#include <string>
#include <vector>

#include "coordinator/commands/serve_command.h"
#include "coordinator/session/interruption.h"
#include "security/security.h"

namespace thinwire {

// Arguments of the commands.
struct QueueFlags {
  std::string server = kQueueAddress;  // host:port
  SecurityOptions security;
  std::vector<std::string> experiments;  // submit: paths of files
  std::vector<std::string> overrides;    // submit: path=value, for all files
  std::string run;                       // watch, cancel: an id
  std::string format = "text";           // list: text or json
};

// All four print errors to stderr and return the process's exit code (exit_code.h): 2 if the server
// refuses the request, 1 if it cannot be reached or fails.

// Prints the ids of the runs, a line each.
int SubmitCommand(const QueueFlags& flags, Interruption* interruption);
// Prints the run's output until its end, and returns the run's exit code.
int WatchCommand(const QueueFlags& flags, Interruption* interruption);
// Prints all runs, a line each.
int ListCommand(const QueueFlags& flags, Interruption* interruption);
// Waits for the run's end and prints how it ended; returns 0 whatever that is.
int CancelCommand(const QueueFlags& flags, Interruption* interruption);

}  // namespace thinwire
