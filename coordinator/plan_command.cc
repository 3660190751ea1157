#include "coordinator/plan_command.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/status.h"
#include "config/experiment.h"
#include "coordinator/exit_code.h"
#include "coordinator/files/file.h"
#include "coordinator/plan/state_plan.h"

namespace thinwire {
namespace {

int Complain(const absl::Status& status, int exit_code) {
  std::fprintf(stderr, "thinwire: %s\n", std::string(status.message()).c_str());
  return exit_code;
}

absl::StatusOr<Plan> PlanOf(const PlanFlags& flags) {
  ASSIGN_OR_RETURN(const Experiment experiment, LoadExperiment(flags.experiment, flags.overrides));
  return MakePlan(experiment, flags.assumptions);
}

}  // namespace

int PlanCommand(const PlanFlags& flags, Interruption* interruption) {
  interruption->OnFirst([] { _exit(kExitInterrupted); });  // there is nothing to end first
  const absl::StatusOr<Plan> plan = PlanOf(flags);
  if (!plan.ok()) return Complain(plan.status(), kExitUsage);
  const absl::Status printed = WriteAll(STDOUT_FILENO, "stdout", FormatPlan(*plan));
  if (!printed.ok()) return Complain(printed, kExitFailed);
  const absl::Status fits = CheckMemory(plan->state, MachineMemoryBytes(), /*one_machine=*/false);
  return fits.ok() ? kExitDone : Complain(fits, kExitUsage);
}

}  // namespace thinwire
