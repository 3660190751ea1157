// `thinwire compare`: two runs, or two sweeps, side by side.
#pragma once

#include <string>

namespace thinwire {

// What the command line says.
struct CompareFlags {
  std::string left, right;  // folders
};

// Says what went wrong on stderr and returns the process's exit code (exit_code.h).
int CompareCommand(const CompareFlags& flags);

}  // namespace thinwire
