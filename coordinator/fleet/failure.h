// Which of several failures was the cause: one broken stage makes its neighbours fail too.
#pragma once

#include <vector>

#include "absl/status/status.h"

namespace thinwire {

struct Failure {
  enum class Kind {
    kDead,      // the process has ended
    kSilent,    // the stage does not answer
    kUnleased,  // the stage answers that it is not ours any more
    kEnds,      // the stage is to end, and waits for us to leave it
    kError,     // a call or the coordinator's own work returned an error
  };
  static constexpr int kCoordinator = -1;

  int stage = kCoordinator;
  Kind kind = Kind::kError;
  absl::Status status;  // not OK; its message names the stage
};

// The cause among several: dead stages come first, then
// silent ones, then errors that no missing neighbour explains (anything but Unavailable,
// DeadlineExceeded and Cancelled), then those in this order; ties to the one that came first.
// `failures` is in order of arrival and not empty, here and below.
Failure CauseOf(std::vector<Failure> failures);

// The cause, with what the other stages said below it, a line each. The coordinator's own failure
// stands alone.
absl::Status RootCause(std::vector<Failure> failures);

// Whether what failed may be made good by beginning again from a checkpoint: a stage that is gone,
// or that cannot be reached. An error of the work itself would come again.
bool IsLoss(const Failure& cause);

}  // namespace thinwire
