// Evaluation on the test set, in the ways that an experiment asks for.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/observer.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Returns whether the resolved `experiment` wants an evaluation after `epoch`; after the last epoch
// it always does.
bool IsEvaluationDue(const Experiment& experiment, uint32_t epoch);

// Evaluates with the codecs, without them, and without them after recalibration, as `evaluation` of
// the experiment says. Fills in `test` of the record and the seconds. `data` comes from the first
// stage. Errors: the fleet's, the observer's, and Internal for a stage that reports another number
// of samples.
absl::Status Evaluate(const Experiment& experiment, const ConfigureResponse& data, uint32_t epoch,
                      Fleet* fleet, RunObserver* observer, EpochRecord* record);

}  // namespace thinwire
