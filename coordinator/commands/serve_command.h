// `thinwire serve`: a queue of experiments that others submit, and the runs that it is worked off
// in.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// Where servers listen, and are looked for, that are named nowhere else.
constexpr char kQueueAddress[] = "127.0.0.1:4600";

// What the command line says.
struct ServeFlags {
  std::string listen = kQueueAddress;          // host:port
  std::string metrics_listen = "127.0.0.1:0";  // host:port
  double metrics_linger_seconds = 0;           // of each run
  std::string out = "runs/queue";              // folder of the queue and of its runs
  bool insecure = false;
  int jobs = 1;  // runs at once, on this machine
  // "HOST:PORT,HOST:PORT": the stage servers of one run at a time; empty: stages are started here.
  std::vector<std::string> stages;
  // Of its stages nothing: `stages` has them. Its certificates and its token are this server's,
  // too.
  SessionOptions session;
};

// Serves until it is interrupted, which is its ordinary end: 0 then. Says what went wrong on stderr
// and returns the process's exit code (exit_code.h). To be called on the main thread, with which
// the runs end.
int ServeCommand(const ServeFlags& flags, Interruption* interruption);

}  // namespace thinwire
