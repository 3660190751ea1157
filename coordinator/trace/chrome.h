// Files of trace events, which Perfetto and chrome://tracing open (Trace Event Format, Chromium
// project), and that of a run. docs/schedules.md describes their content.
#pragma once

#include <functional>
#include <string>
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

std::string TracePath(const std::string& run);

// Reads the trace of the run in that folder. NotFound if the run was not traced; InvalidArgument
// names the file that is no trace, and why.
absl::StatusOr<RunTrace> ReadTrace(const std::string& run);

}  // namespace thinwire
