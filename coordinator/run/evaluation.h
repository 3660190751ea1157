// Evaluation on the test set, in the ways that an experiment asks for.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/observer.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Returns whether the resolved `experiment` wants an evaluation after `epoch`; after the last epoch
// it always does.
bool IsEvaluationDue(const Experiment& experiment, uint32_t epoch);

// Returns whether it wants one after `step` of the run, and none after an epoch that ends there.
bool IsEvaluationDueAt(const Experiment& experiment, uint64_t step, const RunPlan& plan);

// Result of one pass over the test set.
struct Evaluated {
  Measured measured;
  uint64_t wire_bytes = 0;  // sent across cuts by all stages
};

// Evaluates in one way, as `request` says. Of labelled sentences it also says how well classes were
// told apart, or scores foretold. Errors as in Evaluate.
absl::StatusOr<Evaluated> EvaluateOnce(const DataConfig& data, const EvaluateRequest& request,
                                       Fleet* fleet);

// Evaluates with the codecs, without them, and without them after recalibration, as `evaluation` of
// the experiment says, after a `step` of `epoch`; without `test` if it says so of neither. `data`
// comes from the first stage. Errors: the fleet's, the observer's, and Internal for a stage that
// reports another number of samples.
absl::StatusOr<EvaluationRecord> Evaluate(const Experiment& experiment,
                                          const ConfigureResponse& data, uint32_t epoch,
                                          uint64_t step, Fleet* fleet, RunObserver* observer);

}  // namespace thinwire
