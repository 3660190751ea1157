#include "coordinator/plan/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/byte_size.h"
#include "base/status.h"
#include "config/kept.h"
#include "config/specs.h"
#include "config/stash.h"
#include "coordinator/plan/keeping_choice.h"
#include "coordinator/plan/table_text.h"
#include "models/cost.h"

namespace thinwire {
namespace {

constexpr double kAssumedGflops = 50, kAssumedCodecGbps = 1;

std::string SizeText(int64_t bytes) {
  return ByteSizeText(static_cast<uint64_t>(std::max<int64_t>(0, bytes)));
}

// Chooses for one experiment.
class MemoryPlanner {
 public:
  MemoryPlanner(const Experiment& experiment, const PlanAssumptions& assumptions,
                const Speeds& speeds, const std::vector<int64_t>& limits)
      : own_(experiment), assumptions_(assumptions), speeds_(speeds), limits_(limits) {
    if (assumptions_.bits_per_second.size() > 1) {
      assumptions_.bits_per_second = {std::numeric_limits<double>::infinity()};
    }
  }

  absl::StatusOr<FittedExperiment> Fit() {
    ASSIGN_OR_RETURN(partition_, PartitionFrom(own_));
    ASSIGN_OR_RETURN(const auto stash, StashFrom(own_));
    may_stash_ = stash.has_value();
    const std::vector<Keeping> keep(partition_.model.blocks.size(), Keeping::kKeep);
    ASSIGN_OR_RETURN(const Plan plain, PlanWith(keep));
    RETURN_IF_ERROR(AddOptions(plain));
    ASSIGN_OR_RETURN(const KeepingChoice choice,
                     ChooseKeepings(blocks_, limits_, [this](const std::vector<Keeping>& keepings) {
                       return Try(keepings);
                     }));
    if (!choice.fits) return RefuseLimits(plain, choice);
    FittedExperiment fitted{With(choice.keepings), {}};
    ASSIGN_OR_RETURN(const Plan plan, PlanWith(choice.keepings));
    Fill(plan, choice, &fitted.memory);
    return fitted;
  }

 private:
  // Returns whether the planner decides about a block.
  bool Decides(size_t block) const {
    return own_.pipeline().keep().count(partition_.model.blocks[block].name) == 0;
  }

  Experiment With(const std::vector<Keeping>& keepings) const {
    Experiment with = own_;
    for (size_t i = 0; i < keepings.size(); ++i) {
      if (!Decides(i)) continue;
      (*with.mutable_pipeline()->mutable_keep())[partition_.model.blocks[i].name] =
          Name(keepings[i]);
    }
    return with;
  }

  absl::StatusOr<Plan> PlanWith(const std::vector<Keeping>& keepings) const {
    return MakePlan(With(keepings), assumptions_, speeds_);
  }

  absl::StatusOr<TriedKeepings> Try(const std::vector<Keeping>& keepings) const {
    ASSIGN_OR_RETURN(const Plan plan, PlanWith(keepings));
    TriedKeepings tried;
    for (size_t i = 0; i < plan.stages.size(); ++i) {
      tried.stage_bytes.push_back(plan.stages[i].memory_bytes +
                                  static_cast<int64_t>(plan.state.stage_memory_bytes[i]));
      tried.stage_seconds.push_back(
          static_cast<double>(plan.microbatches) *
          (plan.stages[i].forward_seconds + plan.stages[i].backward_seconds));
    }
    tried.step_seconds = plan.steps.front().seconds();
    return tried;
  }

  // Adds the blocks. Those of a chunk are of one kind if they keep and cost the same.
  void AddBlocks(const Plan& plain) {
    std::map<std::tuple<int, int64_t, int64_t, double, double, bool>, int> kinds;
    for (int segment = 0; segment <= static_cast<int>(partition_.cuts.size()); ++segment) {
      const BlockRange range = SegmentBlocks(partition_.model, partition_.cuts, segment);
      for (int i = range.first; i < range.last; ++i) {
        const PlannedBlock& block = plain.blocks[i];
        const BlockSeconds& seconds = speeds_.blocks[i];
        const auto like = std::make_tuple(partition_.placement.ChunkOf(segment), block.kept_bytes,
                                          partition_.model.blocks[i].in.elements(), seconds.forward,
                                          seconds.backward, Decides(i));
        const int kind = kinds.emplace(like, static_cast<int>(kinds.size())).first->second;
        blocks_.push_back({block.stage, kind, {}});
      }
    }
  }

  // Adds the options of each block, with what a plan says in which all blocks that can take one.
  absl::Status AddOptions(const Plan& plain) {
    AddBlocks(plain);
    for (const Keeping keeping : {Keeping::kRecompute, Keeping::kStash, Keeping::kSwap}) {
      std::vector<Keeping> all(blocks_.size(), Keeping::kKeep);
      for (size_t i = 0; i < all.size(); ++i) {
        if (Can(i, plain.blocks[i], keeping)) all[i] = keeping;
      }
      ASSIGN_OR_RETURN(const Plan plan, PlanWith(all));
      for (size_t i = 0; i < all.size(); ++i) {
        if (all[i] == keeping) AddOption(plan, i, keeping);
      }
    }
    return absl::OkStatus();
  }

  void AddOption(const Plan& plan, size_t index, Keeping keeping) {
    const PlannedBlock& block = plan.blocks[index];
    const auto microbatches = static_cast<double>(plan.microbatches);
    KeepingOption option;
    option.does = keeping;
    option.freed_bytes = (block.kept_bytes - block.bytes) * plan.stages[block.stage].most_in_flight;
    option.seconds = microbatches * (block.again_seconds + block.coding_seconds);
    option.moving_seconds = microbatches * block.moving_seconds;
    blocks_[index].options.push_back(option);
  }

  bool Can(size_t index, const PlannedBlock& block, Keeping keeping) const {
    if (!Decides(index) || block.kept_bytes == 0) return false;
    if (keeping == Keeping::kRecompute) return WorthRecomputing(partition_.model.blocks[index]);
    return keeping == Keeping::kStash ? may_stash_ : Swaps(own_);
  }

  // Returns what a block's choice costs in a step: of what is moved, what does not move meanwhile
  // is shared out.
  static double SecondsOf(const Plan& plan, const PlannedBlock& block) {
    double moving = block.moving_seconds;
    if (moving > 0) {
      const PlannedStage& stage = plan.stages[block.stage];
      double exposed = 0;
      for (const PlannedChunk& chunk : stage.chunks) exposed += chunk.exposed_seconds;
      moving *= exposed / stage.moving_seconds;
    }
    return static_cast<double>(plan.microbatches) *
           (block.again_seconds + block.coding_seconds + moving);
  }

  absl::Status RefuseLimits(const Plan& plain, const KeepingChoice& choice) const {
    std::vector<std::string> stages;
    for (size_t i = 0; i < limits_.size(); ++i) {
      if (choice.least_bytes[i] <= limits_[i]) continue;
      const int64_t fixed =
          plain.stages[i].fixed_bytes + static_cast<int64_t>(plain.state.stage_memory_bytes[i]);
      stages.push_back(absl::StrCat(
          "stage ", i, " needs at least ", SizeText(choice.least_bytes[i]), ", ", SizeText(fixed),
          " of it for parameters, gradients and what is remembered, and has ",
          SizeText(limits_[i])));
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        "pipeline.memory: ", own_.pipeline().memory(), ": ", absl::StrJoin(stages, "; "),
        "; want that much, more stages, smaller microbatches or a smaller model",
        Swaps(own_) ? "" : ", or pipeline.swap", may_stash_ ? "" : ", or pipeline.stash"));
  }

  void Fill(const Plan& plan, const KeepingChoice& choice, MemoryPlan* memory) const {
    memory->set_limit_bytes(
        static_cast<uint64_t>(*std::min_element(limits_.begin(), limits_.end())));
    memory->set_step_seconds(choice.tried.step_seconds);
    memory->set_plain_step_seconds(choice.plain.step_seconds);
    memory->set_least_bytes(static_cast<uint64_t>(
        *std::max_element(choice.least_bytes.begin(), choice.least_bytes.end())));
    for (size_t i = 0; i < plan.blocks.size(); ++i) {
      const PlannedBlock& block = plan.blocks[i];
      BlockMemory& row = *memory->add_blocks();
      row.set_block(block.name);
      row.set_stage(static_cast<uint32_t>(block.stage));
      row.set_does(Name(block.does.recompute ? Keeping::kRecompute
                        : block.does.swap    ? Keeping::kSwap
                        : block.does.stash   ? Keeping::kStash
                                             : Keeping::kKeep));
      row.set_kept_bytes(static_cast<uint64_t>(block.kept_bytes));
      row.set_bytes(static_cast<uint64_t>(block.bytes));
      row.set_seconds(SecondsOf(plan, block));
    }
  }

  const Experiment& own_;
  PlanAssumptions assumptions_;
  const Speeds& speeds_;
  const std::vector<int64_t>& limits_;
  Partition partition_;
  bool may_stash_ = false;
  std::vector<ChoosingBlock> blocks_;
};

}  // namespace

absl::StatusOr<FittedExperiment> FitMemory(const Experiment& experiment,
                                           const PlanAssumptions& assumptions, const Speeds& speeds,
                                           const std::vector<int64_t>& limits) {
  return MemoryPlanner(experiment, assumptions, speeds, limits).Fit();
}

absl::StatusOr<std::vector<int64_t>> LimitsOf(const Experiment& experiment,
                                              const std::vector<double>& machine_bytes) {
  ASSIGN_OR_RETURN(const auto limit, MemoryLimitFrom(experiment));
  std::vector<int64_t> limits;
  if (!limit) return limits;
  for (const double bytes : machine_bytes) {
    limits.push_back(limit->bytes ? static_cast<int64_t>(*limit->bytes)
                                  : static_cast<int64_t>((1 - kMemoryMargin) * bytes));
  }
  return limits;
}

absl::StatusOr<Speeds> AssumedSpeeds(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  Speeds speeds;
  ASSIGN_OR_RETURN(speeds.blocks, BlocksAt(partition.model, kAssumedGflops));
  ASSIGN_OR_RETURN(speeds.others, CodingAt(kAssumedCodecGbps));
  return speeds;
}

std::string FormatMemory(const MemoryPlan& memory, const Plan& plan) {
  std::string text = absl::StrFormat("\n%-20s %5s  %-10s %10s %10s %10s\n", "block", "stage",
                                     "does", "keeps MB", "planned MB", "cost ms");
  for (const BlockMemory& block : memory.blocks()) {
    absl::StrAppendFormat(&text, "%-20s %5d  %-10s %10.2f %10.2f %10.2f\n", block.block(),
                          block.stage(), block.does(),
                          static_cast<double>(block.kept_bytes()) / 1e6,
                          static_cast<double>(block.bytes()) / 1e6, 1e3 * block.seconds());
  }
  std::vector<std::string> peaks;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    peaks.push_back(absl::StrFormat(
        "%.1f", static_cast<double>(plan.stages[i].memory_bytes +
                                    static_cast<int64_t>(plan.state.stage_memory_bytes[i])) /
                    1e6));
  }
  return text +
         Wrapped(
             "",
             absl::StrFormat(
                 "Keeps: of each microbatch, until its backward pass. A limit of %s; peaks "
                 "of the stages: %s MB. A step takes %.2f ms, and %.2f ms if all were kept. "
                 "The least possible is %s. Swap: %.3g GB/s (--swap_gbps).",
                 ByteSizeText(memory.limit_bytes()), absl::StrJoin(peaks, ", "),
                 1e3 * memory.step_seconds(), 1e3 * memory.plain_step_seconds(),
                 ByteSizeText(memory.least_bytes()), plan.assumptions.swap_bytes_per_second / 1e9));
}

std::string KeepingText(const MemoryPlan& memory) {
  std::vector<std::string> parts;
  for (const char* does : {"recompute", "stash", "swap"}) {
    std::vector<std::string> names;
    for (const BlockMemory& block : memory.blocks()) {
      if (block.does() == does) names.push_back(block.block());
    }
    if (!names.empty()) parts.push_back(absl::StrCat(does, " ", absl::StrJoin(names, ", ")));
  }
  return parts.empty() ? "all blocks keep what they keep" : absl::StrJoin(parts, "; ");
}

}  // namespace thinwire
