#include "coordinator/commands/report_command.h"

#include <cmath>
#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "coordinator/report/page.h"
#include "coordinator/report/runs.h"
#include "coordinator/session/exit_code.h"

namespace thinwire {
namespace {

std::string FormatOf(const ReportCommandFlags& flags) {
  if (!flags.format.empty()) return flags.format;
  for (const char* format : {"md", "csv"}) {
    if (absl::EndsWith(flags.out, absl::StrCat(".", format))) return format;
  }
  return "html";
}

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

}  // namespace

int ReportCommand(const ReportCommandFlags& flags) {
  const std::string format = FormatOf(flags);
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

}  // namespace thinwire
