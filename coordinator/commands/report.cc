// `thinwire report`: what runs reached, as one page.

#include "coordinator/report/report.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/report/configurations.h"
#include "coordinator/report/page.h"
#include "coordinator/session/exit_code.h"

namespace thinwire {
namespace {

struct ReportCommandFlags {
  std::vector<std::string> dirs;
  ReportFlags report;
  std::string format;  // html, md, csv; empty: as `out` ends, or html
  std::string out;     // empty: report.html in the only folder given, stdout of other formats
};

constexpr char kReportExamples[] =
    R"(DIR is the folder of a run, or one with runs below it; runs that differ in their seed alone are
one configuration. The page loads nothing from elsewhere: summary, curves, accuracy against bytes,
time to a target, every cut, every run and its experiment file. A run that has not finished is
shown as such.

Examples:
  thinwire report runs/quickstart
  thinwire report runs/none runs/topk10 --out report.html --baseline none
  thinwire report runs/sweep --target 0.65 --format md
  thinwire report runs --out results.csv
Exit codes: 0 done, 1 the file could not be written, 2 wrong usage or no runs.
)";

absl::StatusOr<std::string> TextOf(const ReportCommandFlags& flags, const std::string& format) {
  if (flags.report.target && !std::isfinite(*flags.report.target)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--target ", *flags.report.target, ", want a finite number"));
  }
  ASSIGN_OR_RETURN(const std::vector<ReportedRun> runs, ReadRuns(flags.dirs));
  if (format == "csv") return ReportCsv(runs);
  ASSIGN_OR_RETURN(const Report report, ReportOf(runs, flags.report));
  return format == "md" ? ReportMarkdown(report) : Page(report);
}

int ReportCommand(const ReportCommandFlags& flags) {
  const std::string format = FormatFor(flags.format, flags.out, {"md", "csv"}, "html");
  std::string out = flags.out;
  if (out.empty() && format == "html") {
    if (flags.dirs.size() > 1) {
      return Complain(
          absl::InvalidArgumentError(absl::StrCat("report of ", flags.dirs.size(),
                                                  " folders without --out, want --out FILE")),
          kExitUsage);
    }
    out = flags.dirs.front() + "/report.html";
  }
  const auto text = TextOf(flags, format);
  if (!text.ok()) return Complain(text.status(), kExitUsage);
  if (out.empty()) return PrintResult(*text);
  const absl::Status written = ReplaceFile(out, *text);
  if (!written.ok()) return Complain(written, ExitOfPath(written));
  return PrintResult(absl::StrCat("report: ", out, "\n"));
}

}  // namespace

Command AddReport(CLI::App* app) {
  const auto flags = std::make_shared<ReportCommandFlags>();
  CLI::App* report = app->add_subcommand("report", "show what runs reached, as one page");
  report->footer(kReportExamples);
  report->add_option("DIR", flags->dirs, "folders of runs, or of folders of runs")
      ->required()
      ->transform(kPath);
  report
      ->add_option("--out", flags->out,
                   "file to write (default: DIR/report.html; stdout of md and csv)")
      ->transform(kPath);
  report
      ->add_option("--format", flags->format,
                   "html, md or csv (default: as the file ends, or html)")
      ->check(CLI::IsMember({"html", "md", "csv"}));
  report->add_option("--title", flags->report.title, "of the page (default: the folder's name)");
  report->add_option("--baseline", flags->report.baseline,
                     "the configuration that sets the target (default: the first without codecs)");
  report->add_option("--target", flags->report.target,
                     "accuracy, a fraction, or loss that is to be reached (default: the baseline's "
                     "last less a point, or plus 0.02 nats)");
  report
      ->add_option("--evaluation", flags->report.inference,
                   "compressed or uncompressed: which evaluation is to reach the target")
      ->capture_default_str()
      ->check(CLI::IsMember({"compressed", "uncompressed"}));
  return {report, [flags](Interruption*) { return ReportCommand(*flags); }};
}

}  // namespace thinwire
