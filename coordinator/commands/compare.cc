// `thinwire compare`: two runs, or two sweeps, side by side.

#include <memory>
#include <string>

#include "base/status.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/flags.h"
#include "coordinator/results/comparison.h"
#include "coordinator/session/exit_code.h"

namespace thinwire {
namespace {

struct CompareFlags {
  std::string left, right;  // folders
};

constexpr char kCompareExamples[] =
    R"(LEFT and RIGHT are each a run's folder, a sweep's, or one that holds runs' folders. Runs pair by row
and seed.

Examples:
  thinwire compare runs/quickstart runs/topk2
  thinwire compare runs/codecs runs/codecs-of-last-week
Exit codes: 0 done, 2 wrong usage, or nothing to compare.
)";

absl::StatusOr<std::string> Compared(const CompareFlags& flags) {
  ASSIGN_OR_RETURN(const RunSet left, FindRuns(flags.left));
  ASSIGN_OR_RETURN(const RunSet right, FindRuns(flags.right));
  return Comparison(left, right);
}

int CompareCommand(const CompareFlags& flags) {
  const absl::StatusOr<std::string> text = Compared(flags);
  return text.ok() ? PrintResult(*text) : Complain(text.status(), kExitUsage);
}

}  // namespace

Command AddCompare(CLI::App* app) {
  const auto flags = std::make_shared<CompareFlags>();
  CLI::App* compare = app->add_subcommand(
      "compare",
      "two runs or sweeps: fields that differ, first diverging step, epochs, paired "
      "differences");
  compare->footer(kCompareExamples);
  compare->add_option("LEFT", flags->left, "folder")->required()->transform(kPath);
  compare->add_option("RIGHT", flags->right, "folder")->required()->transform(kPath);
  return {compare, [flags](Interruption*) { return CompareCommand(*flags); }};
}

}  // namespace thinwire
