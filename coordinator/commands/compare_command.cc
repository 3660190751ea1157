#include "coordinator/commands/compare_command.h"

#include "base/status.h"
#include "coordinator/results/comparison.h"
#include "coordinator/session/exit_code.h"

namespace thinwire {
namespace {

absl::StatusOr<std::string> Compared(const CompareFlags& flags) {
  ASSIGN_OR_RETURN(const RunSet left, FindRuns(flags.left));
  ASSIGN_OR_RETURN(const RunSet right, FindRuns(flags.right));
  return Comparison(left, right);
}

}  // namespace

int CompareCommand(const CompareFlags& flags) {
  const absl::StatusOr<std::string> text = Compared(flags);
  return text.ok() ? PrintResult(*text) : Complain(text.status(), kExitUsage);
}

}  // namespace thinwire
