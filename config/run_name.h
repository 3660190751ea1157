// The name of a run, which is that of its folder as well.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace thinwire {

// InvalidArgument unless `name` may be one: 1 to 128 letters, digits, '.', '_' and '-', not '.' or
// '..', not beginning with '-'.
absl::Status CheckRunName(const std::string& name);

// What a run is called after its file: "dir/my exp.yaml" -> "my-exp". The file's name without its
// extension and with one '-' for whatever stands between what a name may have; empty if nothing of
// that is there.
std::string RunNameOf(const std::string& path);

}  // namespace thinwire
