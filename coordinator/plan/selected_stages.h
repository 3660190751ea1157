// Choice of the segments of which replicas exchange exactly, by simulation with the speeds of a
// plan.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/speeds.h"
#include "proto/experiment.pb.h"
#include "proto/plan.pb.h"

namespace thinwire {

// Chooses segments of the resolved `experiment` (ExactSegments in config/exact_segments.h) at the
// first link rate of `assumptions`. Entries of segments that it has are left aside. Returns nothing
// where no messages between replicas cross, or none is compressed.
absl::StatusOr<std::optional<SelectedStages>> SelectStages(const Experiment& experiment,
                                                           const PlanAssumptions& assumptions,
                                                           const Speeds& speeds);

// Returns lines with the choice, as entries of `replicas.stages`; `gathers`: the exchange has no
// sums.
std::string FormatSelected(const SelectedStages& selected, bool gathers);

}  // namespace thinwire
