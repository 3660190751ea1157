// The epoch loop: configures and connects the stages, trains and evaluates, fills in the summary.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/observer.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Runs the resolved `experiment` on the stages of `fleet`, from the parameters of `init` if it has
// one, and returns when the last epoch is evaluated; the stages still hold their parameters then.
// Blocks. `summary` always tells what was reached, also after an error; its name, status, error,
// started and finished are the caller's. Errors name the stage, and the root cause among several
// (see Fleet); Cancelled after Fleet::Interrupt.
absl::Status RunExperiment(const Experiment& experiment, Fleet* fleet, RunObserver* observer,
                           Summary* summary);

}  // namespace thinwire
