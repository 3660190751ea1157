// The trace that a run left in its folder.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/trace/trace.h"

namespace thinwire {

std::string TracePath(const std::string& run);

// NotFound where the run in that folder was not traced; InvalidArgument names the file that is no
// trace, and why.
absl::StatusOr<RunTrace> ReadTrace(const std::string& run);

}  // namespace thinwire
