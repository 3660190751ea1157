#include "coordinator/commands/trace_command.h"

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "coordinator/files/json.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/trace/summary.h"
#include "coordinator/trace/timeline.h"
#include "coordinator/trace/trace_file.h"

namespace thinwire {

int TraceCommand(const TraceFlags& flags) {
  const absl::StatusOr<RunTrace> trace = ReadTrace(flags.run);
  if (!trace.ok()) return Complain(trace.status(), kExitUsage);
  const absl::StatusOr<TraceSummary> summary = Summarize(*trace, flags.step);
  if (!summary.ok()) {
    return Complain(absl::Status(summary.status().code(), absl::StrCat(TracePath(flags.run), ": ",
                                                                       summary.status().message())),
                    kExitUsage);
  }
  if (!flags.svg.empty()) {
    const absl::StatusOr<std::string> svg = TimelineSvg(*trace, summary->steps.last());
    if (!svg.ok()) return Complain(svg.status(), kExitFailed);
    const absl::Status written = ReplaceFile(flags.svg, *svg);
    if (!written.ok()) return Complain(written, ExitOfPath(written));
  }
  if (flags.format == "json") {
    return PrintResult(JsonText(SummaryJson(*trace, *summary), 2) + "\n");
  }
  return PrintResult(absl::StrCat(TracePath(flags.run), ": for https://ui.perfetto.dev\n",
                                  SummaryText(*trace, *summary)));
}

}  // namespace thinwire
