// Which steps of a run are traced.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/trace/trace.h"
#include "proto/stage.pb.h"

namespace thinwire {

// "steps=10..12", "steps=5". InvalidArgument says what was met and wanted.
absl::StatusOr<TraceSteps> ParseTraceSteps(const std::string& text);

// InvalidArgument if the asked steps of that run, of which nothing is traced yet, would have more
// slices than a trace holds.
absl::Status CheckTraceSize(const RunTrace& asked);

// InvalidArgument if the run, which has `last` steps and goes on after `done` of them, will not
// come to the asked ones.
absl::Status CheckTraceComes(const TraceSteps& steps, uint64_t done, uint64_t last);

// "step 5", "steps 10 to 12"
std::string Spelled(const TraceSteps& steps);

}  // namespace thinwire
