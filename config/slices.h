// Slices of sequences, which terapipe sends one after the other (schedule/schedule.h).
#pragma once

#include "absl/status/status.h"
#include "config/specs.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Turns `auto` into numbers by BestSlices (schedule/slicing.h). It assumes stages that compute 100
// GFLOP/s, all with the FLOPs of the largest one, and links that take no time. InvalidArgument
// names what is impossible with slices of sequences, or slices that are impossible. The rest of
// `experiment` must be resolved.
absl::Status ResolveSlices(const Partition& partition, Experiment* experiment);

}  // namespace thinwire
