// `thinwire trace`: where the time of a run's traced steps went.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/file.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/files/json.h"
#include "coordinator/session/exit_code.h"
#include "coordinator/trace/chrome.h"
#include "coordinator/trace/summary.h"
#include "coordinator/trace/timeline.h"

namespace thinwire {
namespace {

struct TraceFlags {
  std::string run;               // its folder
  std::optional<uint64_t> step;  // this one alone
  std::string format = "text";   // text, json
  std::string svg;               // where the picture of a step goes; empty: nowhere
};

constexpr char kTraceExamples[] =
    R"(DIR is the folder of a run with --trace. Says where the time of the traced steps went, stage by
stage, and for what each stage waited; --svg draws one of them. The file itself, DIR/trace.json,
opens in https://ui.perfetto.dev. Evaluation is not traced. docs/schedules.md has the rest.

Examples:
  thinwire run experiments/quickstart.yaml --trace steps=10..12
  thinwire trace runs/quickstart
  thinwire trace runs/quickstart --step 11 --svg step.svg
  thinwire trace runs/quickstart --format json
Exit codes: 0 done, 1 the picture could not be written, 2 wrong usage or no trace.
)";

int TraceCommand(const TraceFlags& flags) {
  const absl::StatusOr<RunTrace> trace = ReadTrace(flags.run);
  if (!trace.ok()) return Complain(trace.status(), kExitUsage);
  const absl::StatusOr<TraceSummary> summary = Summarize(*trace, flags.step);
  if (!summary.ok()) {
    return Complain(Annotated(summary.status(), TracePath(flags.run)), kExitUsage);
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

}  // namespace

Command AddTrace(CLI::App* app) {
  const auto flags = std::make_shared<TraceFlags>();
  CLI::App* trace =
      app->add_subcommand("trace", "show where the time of a run's traced steps went");
  trace->footer(kTraceExamples);
  trace->add_option("DIR", flags->run, "folder of the run")->required()->transform(kPath);
  trace->add_option("--step", flags->step, "this step alone (default: all that were traced)");
  AddFormat(trace, &flags->format);
  trace
      ->add_option("--svg", flags->svg,
                   "file for a picture of that step, without --step of the last one")
      ->transform(kPath);
  return {trace, [flags](Interruption*) { return TraceCommand(*flags); }};
}

}  // namespace thinwire
