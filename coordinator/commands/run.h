// `thinwire run`: one experiment from its file to the folder of its results.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// The folder of a run that is named nowhere else: NAME stands for the experiment's name.
constexpr char kFolderOfName[] = "runs/NAME";

// What the command line says.
struct RunFlags {
  std::string experiment;              // path of the file; may be empty with `resume`
  std::vector<std::string> overrides;  // path=value
  std::string out;                     // empty: kFolderOfName
  bool overwrite = false;
  std::string resume;      // folder of a run to go on with, or kFolderOfName; empty: none
  SessionOptions session;  // its logs_dir is the run's
  std::string metrics_listen = "127.0.0.1:0";  // host:port
  double metrics_linger_seconds = 0;
  std::string trace;  // steps to trace, "steps=10..12"; empty: none
  bool quiet = false;
};

// Says what went wrong on stderr and returns the process's exit code (exit_code.h). To be called on
// the main thread and before gRPC is used (see Session::Start).
int RunCommand(RunFlags flags, Interruption* interruption);

}  // namespace thinwire
