// A trace as a file of trace events, which Perfetto and chrome://tracing open (Trace Event Format,
// Chromium project). docs/schedules.md says what stands in it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/trace/trace.h"

namespace thinwire {

// Hands the file of an aligned trace to `sink`, line by line: one event each.
absl::Status WriteChrome(const RunTrace& trace,
                         const std::function<absl::Status(std::string_view)>& sink);

// The trace of such a file, aligned. InvalidArgument says what is not as WriteChrome writes it.
absl::StatusOr<RunTrace> ParseChrome(std::string_view text);

}  // namespace thinwire
