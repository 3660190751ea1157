// `thinwire serve`: a queue of experiments that others submit, and the runs that work it off.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// Default address, of the server and of the commands that ask it.
constexpr char kQueueAddress[] = "127.0.0.1:4600";

// Arguments of the command.
struct ServeFlags {
  std::string listen = kQueueAddress;          // host:port
  std::string metrics_listen = "127.0.0.1:0";  // host:port
  double metrics_linger_seconds = 0;           // of each run
  std::string out = "runs/queue";              // folder of the queue and of its runs
  bool insecure = false;
  int jobs = 1;  // number of runs at once, on this machine
  // Groups of stage servers, "HOST:PORT,HOST:PORT", each for one run at a time; empty: runs start
  // their own stages.
  std::vector<std::string> stages;
  // Options for stage servers; its stages are ignored, as `stages` has them. Certificates and token
  // are also this server's own.
  SessionOptions session;
};

// Serves until it is interrupted, which is its ordinary end and returns 0. Prints errors to stderr
// and returns the process's exit code (exit_code.h). Must be called on the main thread: the runs
// end with it.
int ServeCommand(const ServeFlags& flags, Interruption* interruption);

}  // namespace thinwire
