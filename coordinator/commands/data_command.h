// `thinwire data`: which data sets there are, and how to get them.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/interruption.h"

namespace thinwire {

struct DataFlags {
  std::string action;              // list, fetch
  std::vector<std::string> names;  // fetch: which
  std::string dir;                 // fetch: where to; empty: data/NAME
  std::string from;                // fetch: a mirror, see FetchOptions
};

// Returns the process's exit code; what is wrong goes to stderr.
int DataCommand(const DataFlags& flags, Interruption* interruption);

}  // namespace thinwire
