// `thinwire plan`: prints the plan of an experiment file.
#pragma once

#include <string>
#include <vector>

#include "coordinator/interruption.h"
#include "coordinator/plan/plan.h"

namespace thinwire {

struct PlanFlags {
  std::string experiment;              // path of the file
  std::vector<std::string> overrides;  // path=value
  PlanAssumptions assumptions;
};

// Prints the plan, and then refuses what would not run on machines like this one. Returns the
// process's exit code; what is wrong goes to stderr. A signal ends the process.
int PlanCommand(const PlanFlags& flags, Interruption* interruption);

}  // namespace thinwire
