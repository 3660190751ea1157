// `thinwire data`: lists data sets and fetches them.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/interruption.h"

namespace thinwire {

// Arguments of the command.
struct DataFlags {
  std::string action;              // list, fetch
  std::vector<std::string> names;  // fetch: names of data sets
  std::string dir;                 // fetch: target folder; empty: data/NAME
  std::string from;                // fetch: a mirror, see FetchOptions
};

// Returns the process's exit code; errors go to stderr.
int DataCommand(const DataFlags& flags, Interruption* interruption);

}  // namespace thinwire
