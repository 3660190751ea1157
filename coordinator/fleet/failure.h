// Which of several failures was the cause: one broken stage makes its neighbours fail too.
#pragma once

#include <vector>

#include "absl/status/status.h"

namespace thinwire {

struct Failure {
  enum class Kind {
    kDead,    // the process has ended
    kSilent,  // the stage does not answer
    kError,   // a call or the coordinator's own work returned an error
  };
  static constexpr int kCoordinator = -1;

  int stage = kCoordinator;
  Kind kind = Kind::kError;
  absl::Status status;  // not OK; its message names the stage
};

// The cause, with what the other stages said below it, a line each. Dead stages come first, then
// silent ones, then errors that no missing neighbour explains (anything but Unavailable,
// DeadlineExceeded and Cancelled), then those in this order; ties to the one that came first. The
// coordinator's own failure stands alone.
// `failures` is in order of arrival and not empty.
absl::Status RootCause(std::vector<Failure> failures);

}  // namespace thinwire
