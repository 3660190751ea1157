// `thinwire generate`: text from the language model of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// Arguments of the command.
struct GenerateFlags {
  std::string run;                     // folder of the run
  std::vector<std::string> overrides;  // path=value
  std::string prompt;                  // "-": read from stdin
  int64_t tokens = 200;                // number to draw
  double temperature = 1;              // this and the next two: see nn/sampling.h
  int64_t top_k = 0;
  double top_p = 1;
  uint64_t seed = 1;
  std::string compression = "on";  // or off
  SessionOptions session;
};

// Writes the text, prompt included, to stdout as it comes, and its speed and errors to stderr.
// Returns the process's exit code (exit_code.h). Must be called on the main thread, before gRPC is
// used (see Session::Start).
int GenerateCommand(GenerateFlags flags, Interruption* interruption);

}  // namespace thinwire
