// `thinwire codecs`: lists, checks and measures codecs.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

struct CodecsFlags {
  std::string conformance;          // a codec to check: its text, or the path of a library
  bool measure = false;             // measure codecs...
  std::vector<std::string> files;   // ...on the tensors of these; none: of a short run
  std::vector<std::string> codecs;  // measure these only, as in `conformance`
  std::string parameters;           // JSON for a library
  std::string format = "md";        // md, json
  double seconds = 60;              // of measuring
  SessionOptions session;           // of the short run
};

// Returns the process's exit code; what is wrong goes to stderr.
int CodecsCommand(const CodecsFlags& flags, Interruption* interruption);

}  // namespace thinwire
