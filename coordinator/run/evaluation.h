// The test set, run in the ways that an experiment asks for.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/observer.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Whether the resolved `experiment` wants one behind that epoch; behind the last it does.
bool IsEvaluationDue(const Experiment& experiment, uint32_t epoch);

// With the codecs, without them and without them recalibrated, as `evaluation` says; fills in the
// record's `test` and how long it took. `data`: of the first stage. Errors: the fleet's, the
// observer's, and Internal for a stage that reports another number of samples.
absl::Status Evaluate(const Experiment& experiment, const ConfigureResponse& data, uint32_t epoch,
                      Fleet* fleet, RunObserver* observer, EpochRecord* record);

}  // namespace thinwire
