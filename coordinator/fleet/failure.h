// Finding the cause among several failures: one broken stage makes its neighbours fail too.
#pragma once

#include <vector>

#include "absl/status/status.h"

namespace thinwire {

// One failure of a stage or of the coordinator.
struct Failure {
  enum class Kind {
    kDead,         // the process has ended
    kSilent,       // the stage does not answer
    kUnleased,     // the stage answers that its lease is no longer ours
    kEnds,         // the stage is to end, and waits for us to leave it
    kUnfit,        // a server that has joined cannot take its place: other data, another device
    kJoins,        // nothing is lost: there are servers for another pipeline
    kSpeeds,       // nothing is lost: replicas are to be dealt by speed
    kInterrupted,  // nothing is known to be lost: not all could end a step
    kError,        // a call or the coordinator's own work returned an error
  };
  static constexpr int kCoordinator = -1;

  int stage = kCoordinator;  // index of its server in the fleet
  Kind kind = Kind::kError;
  absl::Status status;  // not OK; its message names the stage
};

// Returns the likeliest cause. Dead stages come first, then silent ones. Then come errors that no
// missing neighbour explains, that is any but DeadlineExceeded, Unavailable and Cancelled, and then
// those three in this order. Of equals the first to arrive is taken. `failures` is in order of
// arrival and not empty, here and below.
Failure CauseOf(std::vector<Failure> failures);

// Returns the cause, with what the other stages said below it, a line each. A failure of the
// coordinator itself stands alone.
absl::Status RootCause(std::vector<Failure> failures);

// Returns whether a restart from a checkpoint may help: a stage is gone or cannot be reached. An
// error of the work itself would come again.
bool IsLoss(const Failure& cause);

}  // namespace thinwire
