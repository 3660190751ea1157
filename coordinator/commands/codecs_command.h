// `thinwire codecs`: lists, checks and measures codecs.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// Arguments of the command.
struct CodecsFlags {
  std::string conformance;  // a codec to check: its text, or the path of a library
  bool measure = false;     // True: measure codecs.
  // Measure on the tensors of these files; none: on those of a short run.
  std::vector<std::string> files;
  std::vector<std::string> codecs;  // measure these only, written as in `conformance`
  std::string parameters;           // JSON parameters of a library
  std::string format = "md";        // md, json
  double seconds = 60;              // time limit of measuring
  SessionOptions session;           // stages of the short run
};

// Returns the process's exit code; errors go to stderr.
int CodecsCommand(const CodecsFlags& flags, Interruption* interruption);

}  // namespace thinwire
