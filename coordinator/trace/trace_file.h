// The trace file in a run's folder.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/trace/trace.h"

namespace thinwire {

std::string TracePath(const std::string& run);

// Reads the trace of the run in that folder. NotFound if the run was not traced; InvalidArgument
// names the file that is no trace, and why.
absl::StatusOr<RunTrace> ReadTrace(const std::string& run);

}  // namespace thinwire
