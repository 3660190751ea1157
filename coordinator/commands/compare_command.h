// `thinwire compare`: compares two runs or two sweeps.
#pragma once

#include <string>

namespace thinwire {

// Arguments of the command.
struct CompareFlags {
  std::string left, right;  // folders
};

// Prints errors to stderr and returns the process's exit code (exit_code.h).
int CompareCommand(const CompareFlags& flags);

}  // namespace thinwire
