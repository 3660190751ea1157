// Transfer of captured tensors from the stages to a run's observer.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/observer.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Returns InvalidArgument if a step to capture is after the last one of `plan`. That can happen
// although the experiment was checked, as data files other than the official ones may hold fewer
// samples.
absl::Status CheckCaptureSteps(const Experiment& experiment, const RunPlan& plan);

// Passes the captures of the steps after `after`, up to `until`, to the observer, and those of the
// first step warn of outliers. ResourceExhausted names a stage whose file is larger than
// capture.limit_bytes allows.
absl::Status FetchCaptures(const Experiment& experiment, uint64_t after, uint64_t until,
                           Fleet* fleet, RunObserver* observer);

}  // namespace thinwire
