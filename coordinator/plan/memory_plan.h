// An experiment whose stages fit into a limit of memory (pipeline.memory).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/speeds.h"
#include "proto/experiment.pb.h"
#include "proto/plan.pb.h"

namespace thinwire {

// Share of a machine's memory that `auto` leaves alone: for programs, for workspace of kernels, and
// for what a plan does not count.
inline constexpr double kMemoryMargin = 0.15;

// An experiment with pipeline.keep filled in.
struct FittedExperiment {
  Experiment experiment;
  MemoryPlan memory;
};

// Chooses what the blocks of the resolved `experiment` do that pipeline.keep does not name, so that
// each stage takes at most `limits` bytes, with what its feedback remembers (ChooseKeepings in
// keeping_choice.h). Blocks keep or run again; they stash where pipeline.stash says how, which may
// change numbers, and swap where pipeline.swap says where. What those fields and
// pipeline.recompute say of all blocks is left aside. A step is simulated at the link rate of
// `assumptions`, if there is only one, else with messages that take no time. ResourceExhausted
// names, for each stage that cannot fit, the least that it needs.
absl::StatusOr<FittedExperiment> FitMemory(const Experiment& experiment,
                                           const PlanAssumptions& assumptions, const Speeds& speeds,
                                           const std::vector<int64_t>& limits);

// Returns the limits of the stages of an experiment with pipeline.memory: as it says, or with
// `auto` what is left of `machine_bytes`, of each stage's machine, for each of those that share it.
// Empty without pipeline.memory.
absl::StatusOr<std::vector<int64_t>> LimitsOf(const Experiment& experiment,
                                              const std::vector<double>& machine_bytes);

// Returns speeds for a choice before a run, which measures nothing: 50 GFLOP/s, and codecs of
// 1 GB/s.
absl::StatusOr<Speeds> AssumedSpeeds(const Experiment& experiment);

// Returns a table of blocks.
std::string FormatMemory(const MemoryPlan& memory, const Plan& plan);
// Returns a line on what blocks do: "recompute h.0, h.1; swap h.2".
std::string KeepingText(const MemoryPlan& memory);

}  // namespace thinwire
