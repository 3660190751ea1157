// Ways to lay an experiment out on a number of machines, as replicas of pipelines whose stages may
// have tensor-parallel parts, ranked by how long a step takes or by what an epoch costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/speeds.h"
#include "proto/experiment.pb.h"
#include "proto/plan.pb.h"

namespace thinwire {

// Steps between exchanges that are tried, unless the experiment has local steps of its own. Rarer
// exchanges lose more (docs/results.md).
inline constexpr uint32_t kLocalSteps[] = {16, 64};

// Prices of machines.
struct Prices {
  double of_hour = 0;      // of a machine
  double of_gigabyte = 0;  // of 10^9 bytes that a machine sends
};

struct LayoutOptions {
  int machines = 1;
  // As ParseCodecPair reads them; both act on sums over parts, too, and that of gradients on what
  // replicas exchange. "none", the experiment's own and two usual codecs are always tried.
  std::vector<std::string> codecs;
  std::string parameters;  // JSON parameters of the codecs
  // Numbers of microbatches of a replica, of which the fastest counts; empty: the experiment's,
  // half of it, twice it, and the one with which a batch has as many as the experiment's.
  std::vector<int64_t> microbatches;
  // Numbers of tensor-parallel parts, divisors of the machines; empty: all if the experiment has
  // parts, otherwise 1.
  std::vector<int64_t> parts;
  double memory_bytes = 0;       // of a machine
  std::optional<Prices> prices;  // unset: layouts are ranked by time
};

// An experiment on as many machines as it has replicas, stages and parts.
struct Layout {
  uint32_t replicas = 1, stages = 1, parts = 1;
  uint32_t every = 0;  // 0: replicas exchange every step; otherwise they train locally
  std::string codec;   // as the user wrote it; "none", "the file's"
  Experiment experiment;
  bool is_own = false;              // True for the user's experiment unchanged.
  bool other_microbatches = false;  // True if a batch has another number than the user's.
};

struct Layouts {
  std::vector<Layout> all;
  std::vector<std::string> left_out;  // a line for each layout that is impossible, with the reason
};

// Returns the layouts of the resolved `experiment` whose replicas, stages and parts make
// `options.machines`, each with every codec and number of microbatches, and where there are several
// replicas, with an exchange every step and with local steps. Cuts stay where they are
// if there are enough, and nobody left them to the program; otherwise they are balanced.
// InvalidArgument names the flag and the value: of a codec that is none, of microbatches that no
// batch has, of parts that do not divide the machines, of prices and memory below 0, and of
// machines for which there is no layout.
absl::StatusOr<Layouts> LayoutsFor(const Experiment& experiment, const LayoutOptions& options);

// Ranks `layouts` at the first link rate of `assumptions`, each with the best of its numbers of
// microbatches; the experiment itself stands by itself where another number is better. Those that
// do not fit into a machine's memory come last.
absl::StatusOr<std::vector<LayoutEstimate>> RankedLayouts(const std::vector<Layout>& layouts,
                                                          const LayoutOptions& options,
                                                          const PlanAssumptions& assumptions,
                                                          const Speeds& speeds);

// Returns a table of at most 80 columns, provided that the codecs' names are short. `plan` is one
// with the same assumptions and speeds.
std::string FormatLayouts(const std::vector<LayoutEstimate>& estimates,
                          const LayoutOptions& options, const std::vector<std::string>& left_out,
                          const Plan& plan);

}  // namespace thinwire
