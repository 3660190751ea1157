// Running other programs of the system to their end.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/session/interruption.h"

namespace thinwire {

// Runs arguments[0], found by $PATH, on this process's terminal. Returns its exit code, or 128 plus
// the number of the signal that ended it. NotFound if there is no such program. If a signal comes,
// the program gets SIGTERM, and Cancelled is returned once it has ended. One call at a time.
absl::StatusOr<int> RunProgram(const std::vector<std::string>& arguments,
                               Interruption* interruption);

}  // namespace thinwire
