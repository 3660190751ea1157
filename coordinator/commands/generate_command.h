// `thinwire generate`: text from the language model that a run has trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// What the command line says.
struct GenerateFlags {
  std::string run;                     // its folder
  std::vector<std::string> overrides;  // path=value
  std::string prompt;                  // "-": what stdin has
  int64_t tokens = 200;                // to draw
  double temperature = 1;              // these three as in nn/sampling.h
  int64_t top_k = 0;
  double top_p = 1;
  uint64_t seed = 1;
  std::string compression = "on";  // or off
  SessionOptions session;
};

// Writes the text to stdout as it comes, prompt included, and its speed to stderr; says there what
// went wrong, and returns the process's exit code (exit_code.h). To be called on the main thread
// and before gRPC is used (see Session::Start).
int GenerateCommand(GenerateFlags flags, Interruption* interruption);

}  // namespace thinwire
