#include "coordinator/trace_command.h"

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "coordinator/exit_code.h"
#include "coordinator/files/json.h"
#include "coordinator/trace/chrome.h"
#include "coordinator/trace/summary.h"
#include "coordinator/trace/timeline.h"

namespace thinwire {
namespace {

std::string PathOf(const std::string& run) { return run + "/trace.json"; }

absl::StatusOr<RunTrace> ReadTrace(const std::string& run) {
  const std::string path = PathOf(run);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(
        absl::StrCat(text.status().message(), "; thinwire run --trace steps=N..M writes it"));
  }
  RETURN_IF_ERROR(text.status());
  absl::StatusOr<RunTrace> trace = ParseChrome(*text);
  if (trace.ok()) return trace;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is no trace of Thinwire: ", trace.status().message()));
}

}  // namespace

int TraceCommand(const TraceFlags& flags) {
  const absl::StatusOr<RunTrace> trace = ReadTrace(flags.run);
  if (!trace.ok()) return Complain(trace.status(), kExitUsage);
  const absl::StatusOr<TraceSummary> summary = Summarize(*trace, flags.step);
  if (!summary.ok()) {
    return Complain(absl::Status(summary.status().code(),
                                 absl::StrCat(PathOf(flags.run), ": ", summary.status().message())),
                    kExitUsage);
  }
  if (!flags.svg.empty()) {
    const absl::StatusOr<std::string> svg = TimelineSvg(*trace, summary->steps.last());
    const absl::Status written = svg.ok() ? ReplaceFile(flags.svg, *svg) : svg.status();
    if (!written.ok()) return Complain(written, kExitFailed);
  }
  if (flags.format == "json") {
    return PrintResult(JsonText(SummaryJson(*trace, *summary), 2) + "\n");
  }
  return PrintResult(absl::StrCat(PathOf(flags.run), ": for https://ui.perfetto.dev\n",
                                  SummaryText(*trace, *summary)));
}

}  // namespace thinwire
