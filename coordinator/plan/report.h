// Conversion of a plan to the message that `thinwire plan --format json` prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/plan/choices.h"
#include "coordinator/plan/plan.h"
#include "proto/plan.pb.h"

namespace thinwire {

// Returns the report of an experiment called `name`. `left_out` is that of Candidates or Layouts.
PlanReport ReportOf(const std::string& name, const Plan& plan,
                    const std::vector<ChoiceEstimate>& choices,
                    const std::vector<LayoutEstimate>& layouts,
                    const std::vector<std::string>& left_out,
                    const std::optional<SelectedStages>& selected = std::nullopt);

}  // namespace thinwire
