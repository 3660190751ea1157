// A plan as `thinwire plan --format json` prints it.
#pragma once

#include <string>
#include <vector>

#include "coordinator/plan/choices.h"
#include "coordinator/plan/plan.h"
#include "proto/plan.pb.h"

namespace thinwire {

// `name`: the experiment's. `left_out`: as in Candidates.
PlanReport ReportOf(const std::string& name, const Plan& plan,
                    const std::vector<RankedChoice>& choices,
                    const std::vector<std::string>& left_out);

}  // namespace thinwire
