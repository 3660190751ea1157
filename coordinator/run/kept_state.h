// Going on after a loss with the state that stages have kept in memory: without a checkpoint, from
// the step that all stages have done or can do.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "coordinator/fleet/fleet.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Returns where all stages can go on: behind the last step that any server has done or that was
// `reported` done, as then all were ready for its update. `answers` are those of Acquire, of as
// many carriers of `stages` stages. Nothing if a stage has no server that stands there or is ready
// for that step, or if it was not reported.
std::optional<StageStanding> CommonStanding(absl::Span<const AcquireResponse> answers, int stages,
                                            const StageStanding& reported);

// Returns whether each stage has a server with its state.
bool HasEachStage(const std::vector<bool>& are_kept, int stages);

// Returns for each server without its stage's state one of that stage that has it, -1 for the
// others and where there is none. Those that have it take turns, as their lines are what lasts.
std::vector<int> StateSources(const std::vector<bool>& are_kept, int stages);

// Lets those in `sources` hold their state after `step` for others, which all that do not follow
// fetch now: then they have no source any more. All are connected. Errors as Fleet::OnAll.
absl::Status SpreadKeptState(uint64_t step, Fleet* fleet, std::vector<int>* sources);

// Makes a server fetch that state from server `source`. FailedPrecondition if both are there and do
// not reach each other.
absl::Status FetchKeptState(int source, uint64_t step, Fleet* fleet, StageClient* to);

}  // namespace thinwire
