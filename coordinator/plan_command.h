// `thinwire plan`: prints the plan of an experiment file.
#pragma once

#include <string>
#include <vector>

#include "coordinator/plan.h"

namespace thinwire {

struct PlanFlags {
  std::string experiment;              // path of the file
  std::vector<std::string> overrides;  // path=value
  PlanAssumptions assumptions;
};

// Returns the process's exit code; what is wrong with the file goes to stderr.
int PlanCommand(const PlanFlags& flags);

}  // namespace thinwire
