// Names of runs, which are also names of their folders.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace thinwire {

// Returns InvalidArgument unless `name` is a valid name: 1 to 128 letters, digits, '.', '_' and
// '-', not '.' or '..', and not beginning with '-'.
absl::Status CheckRunName(const std::string& name);

// Returns the name of a run from its file: "dir/my exp.yaml" -> "my-exp". It is the file's name
// without extension, with one '-' for each sequence of characters that a name may not have. Empty
// if no other characters are left.
std::string RunNameOf(const std::string& path);

}  // namespace thinwire
