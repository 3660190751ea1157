// `thinwire run`: one experiment from its file to the folder of its results.
#pragma once

#include <string>
#include <vector>

#include "coordinator/interruption.h"

namespace thinwire {

// What the command line says.
struct RunFlags {
  std::string experiment;              // path of the file
  std::vector<std::string> overrides;  // path=value
  std::string out;                     // empty: runs/NAME
  bool overwrite = false;
  std::vector<std::string> stages;             // of servers started by hand; empty: start them here
  std::string metrics_listen = "127.0.0.1:0";  // host:port
  double metrics_linger_seconds = 0;
  bool quiet = false;
  std::string stage_server;  // path of the binary; empty: look beside our own
  std::string cuda_plugin;   // of stages started here; empty: the stage server looks for it
};

// Says what went wrong on stderr and returns the process's exit code (exit_code.h). On the main
// thread and before gRPC is used (see LocalStages::Start).
int RunCommand(const RunFlags& flags, Interruption* interruption);

}  // namespace thinwire
