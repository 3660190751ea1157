// Text that a tune prints on a terminal.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/tune/rungs.h"
#include "proto/tune.pb.h"

namespace thinwire {

// Returns the ranked table, the choice, its cost, and a line for each candidate that fell or was
// left out. The report must be complete.
std::string TuneText(const TuneReport& report);

// Returns what is about to be trained and how much of the budget that takes. `step_seconds` is the
// time that this machine computes for a step.
std::string BudgetText(const RungBudget& budget, uint64_t probe_steps, double step_seconds);

}  // namespace thinwire
