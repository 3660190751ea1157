// Files of trace events, which Perfetto and chrome://tracing open (Trace Event Format, Chromium
// project). docs/schedules.md describes their content.
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/trace/trace.h"

namespace thinwire {

// Writes an aligned trace to `sink`, line by line, with one event on each.
absl::Status WriteChrome(const RunTrace& trace,
                         const std::function<absl::Status(std::string_view)>& sink);

// Reads such a file; the trace is aligned. InvalidArgument says what WriteChrome would not write.
absl::StatusOr<RunTrace> ParseChrome(std::string_view text);

}  // namespace thinwire
