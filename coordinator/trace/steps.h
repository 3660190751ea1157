// The steps of a run that are traced.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/trace/trace.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Parses "steps=10..12" or "steps=5". InvalidArgument says what was met and what is wanted.
absl::StatusOr<TraceSteps> ParseTraceSteps(const std::string& text);

// Returns InvalidArgument if the steps asked for would have more slices than a trace holds. `asked`
// is the trace of the run before anything is traced.
absl::Status CheckTraceSize(const RunTrace& asked);

// Returns InvalidArgument if the run, which has `last` steps and continues after step `done`, will
// not reach the steps asked for.
absl::Status CheckTraceComes(const TraceSteps& steps, uint64_t done, uint64_t last);

// Returns "step 5" or "steps 10 to 12".
std::string Spelled(const TraceSteps& steps);

}  // namespace thinwire
