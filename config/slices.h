// Slices of sequences, which terapipe sends one behind the other (schedule/schedule.h).
#pragma once

#include "absl/status/status.h"
#include "config/specs.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// InvalidArgument names what cannot be where sequences are cut into slices, or slices that cannot
// be. `experiment` is resolved but for that.
absl::Status CheckSlices(const Experiment& experiment, const Partition& partition);

}  // namespace thinwire
