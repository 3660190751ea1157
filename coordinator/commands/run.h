// `thinwire run`: trains one experiment, from its file to the folder of its results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// Default folder of a run; NAME stands for the experiment's name.
constexpr char kFolderOfName[] = "runs/NAME";

// Arguments of the command.
struct RunFlags {
  std::string experiment;              // path of the file; may be empty with `resume`
  std::vector<std::string> overrides;  // path=value
  std::string out;                     // empty: kFolderOfName
  bool overwrite = false;
  // Folder of a run to continue, or kFolderOfName; empty: none. "@STEP" may stand behind it.
  std::string resume;
  std::optional<uint64_t> step;  // of the checkpoint to continue from, taken from `resume`
  SessionOptions session;        // its logs_dir is set by RunCommand
  std::string carriers;          // "2" of all stages, or "3,2"; empty: the session decides
  std::string metrics_listen = "127.0.0.1:0";  // host:port
  double metrics_linger_seconds = 0;
  std::string trace;  // steps to trace, "steps=10..12"; empty: none
  bool quiet = false;
};

// Prints errors to stderr and returns the process's exit code (exit_code.h). Must be called on the
// main thread, before gRPC is used (see Session::Start).
int RunCommand(RunFlags flags, Interruption* interruption);

}  // namespace thinwire
