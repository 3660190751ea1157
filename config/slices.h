// Slices of sequences, which terapipe sends one behind the other (schedule/schedule.h).
#pragma once

#include "absl/status/status.h"
#include "config/specs.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Makes numbers of `auto`: BestSlices (schedule/slicing.h) for stages like the one with the most
// FLOPs, which computes 100 GFLOP/s, behind links that are no hindrance. InvalidArgument names what
// cannot be where sequences are cut into slices, or slices that cannot be. `experiment` is resolved
// but for that.
absl::Status ResolveSlices(const Partition& partition, Experiment* experiment);

}  // namespace thinwire
