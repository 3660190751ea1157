#include "coordinator/plan_command.h"

#include <cstdio>

#include "base/status.h"
#include "config/experiment.h"
#include "coordinator/exit_code.h"
#include "coordinator/state_plan.h"

namespace thinwire {
namespace {

// Prints what it finds, and then refuses what would not run on machines like this one.
absl::Status PrintPlan(const PlanFlags& flags) {
  ASSIGN_OR_RETURN(const Experiment experiment, LoadExperiment(flags.experiment, flags.overrides));
  ASSIGN_OR_RETURN(const Plan plan, MakePlan(experiment, flags.assumptions));
  std::fputs(FormatPlan(plan).c_str(), stdout);
  return CheckMemory(plan.state, MachineMemoryBytes(), /*one_machine=*/false);
}

}  // namespace

int PlanCommand(const PlanFlags& flags) {
  const absl::Status status = PrintPlan(flags);
  if (status.ok()) return kExitDone;
  std::fprintf(stderr, "thinwire: %s\n", std::string(status.message()).c_str());
  return kExitUsage;
}

}  // namespace thinwire
