// Other programs of the system, run to their end.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/session/interruption.h"

namespace thinwire {

// Runs arguments[0], found by $PATH, with this process's terminal, and returns its exit code; 128
// and the signal's number where one ended it. NotFound if there is no such program; Cancelled, once
// it is gone, if a signal has come: it is sent SIGTERM then. One at a time.
absl::StatusOr<int> RunProgram(const std::vector<std::string>& arguments,
                               Interruption* interruption);

}  // namespace thinwire
