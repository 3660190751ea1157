// Placement of a run's stages on servers, decided anew for each generation.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/observer.h"
#include "coordinator/trace/trace.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// The stages of one generation on their servers.
struct PlacedStages {
  std::vector<RunPlan::Stage> stages;  // by server
  ConfigureResponse data;              // of the first stage
  // Step after which all stages go on with what they kept; absent: they begin anew.
  std::optional<uint64_t> kept_step;
  // By server: from which other it has yet to fetch its state after that step, as it follows; -1:
  // from none.
  std::vector<int> sources;
  uint64_t least_memory_bytes = 0;  // that any server has left
};

// Leases the servers of `fleet` and makes them pipelines, one of each carrier: each has a stage of
// `experiment`, with its share of its machine's cores, and sends to the next. `trace` has the
// steps to trace; null: none. Replaces what `summary` says of where the run is. With `reported`,
// the last step that was reported done, the stages go on with what they kept, if all can.
absl::StatusOr<PlacedStages> PlaceStages(const Experiment& experiment, const TraceSteps* trace,
                                         const std::optional<StageStanding>& reported, Fleet* fleet,
                                         Summary* summary);

}  // namespace thinwire
