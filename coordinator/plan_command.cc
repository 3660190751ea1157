#include "coordinator/plan_command.h"

#include <unistd.h>

#include "base/status.h"
#include "config/experiment.h"
#include "coordinator/exit_code.h"
#include "coordinator/plan/state_plan.h"

namespace thinwire {
namespace {

absl::StatusOr<Plan> PlanOf(const PlanFlags& flags) {
  ASSIGN_OR_RETURN(const Experiment experiment, LoadExperiment(flags.experiment, flags.overrides));
  return MakePlan(experiment, flags.assumptions);
}

}  // namespace

int PlanCommand(const PlanFlags& flags, Interruption* interruption) {
  interruption->OnFirst([] { _exit(kExitInterrupted); });  // there is nothing to end first
  const absl::StatusOr<Plan> plan = PlanOf(flags);
  if (!plan.ok()) return Complain(plan.status(), kExitUsage);
  if (const ExitCode printed = PrintResult(FormatPlan(*plan)); printed != kExitDone) return printed;
  absl::Status fits = CheckMemory(plan->state, MachineMemoryBytes(), /*one_machine=*/false);
  fits.Update(CheckFolders(plan->state));
  return fits.ok() ? kExitDone : Complain(fits, kExitUsage);
}

}  // namespace thinwire
