#include "coordinator/plan_command.h"

#include <cstdio>

#include "base/status.h"
#include "config/experiment.h"
#include "coordinator/exit_code.h"

namespace thinwire {
namespace {

absl::StatusOr<std::string> PlanText(const PlanFlags& flags) {
  ASSIGN_OR_RETURN(const Experiment experiment, LoadExperiment(flags.experiment, flags.overrides));
  ASSIGN_OR_RETURN(const Plan plan, MakePlan(experiment, flags.assumptions));
  return FormatPlan(plan);
}

}  // namespace

int PlanCommand(const PlanFlags& flags) {
  const absl::StatusOr<std::string> text = PlanText(flags);
  if (!text.ok()) {
    std::fprintf(stderr, "thinwire: %s\n", std::string(text.status().message()).c_str());
    return kExitUsage;
  }
  std::fputs(text->c_str(), stdout);
  return kExitDone;
}

}  // namespace thinwire
