// What a tune says on a terminal.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/tune/rungs.h"
#include "proto/tune.pb.h"

namespace thinwire {

// The ranked table, the choice, what it cost, and a line for each candidate that fell and for each
// that was left out. The report is complete.
std::string TuneText(const TuneReport& report);

// What is about to be trained, and what it costs of what it may; `step_seconds` as this machine
// computes a step.
std::string BudgetText(const RungBudget& budget, uint64_t probe_steps, double step_seconds);

}  // namespace thinwire
