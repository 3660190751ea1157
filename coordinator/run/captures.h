// Tensors that the stages captured, on their way to a run's observer.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/observer.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// InvalidArgument if a step to capture is behind the last one of `plan`. Files that are not the
// official ones may hold fewer samples than the experiment was checked for.
absl::Status CheckCaptureSteps(const Experiment& experiment, const RunPlan& plan);

// Hands what was captured of the steps after `after`, up to `until`, to the observer.
// ResourceExhausted naming a stage whose file is larger than capture.limit_bytes allows.
absl::Status FetchCaptures(const Experiment& experiment, uint64_t after, uint64_t until,
                           Fleet* fleet, RunObserver* observer);

}  // namespace thinwire
