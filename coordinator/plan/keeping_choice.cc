#include "coordinator/plan/keeping_choice.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace thinwire {
namespace {

// A step that is shorter by less than this share is not worth another choice.
constexpr double kLeastGain = 1e-6;

class Chooser {
 public:
  Chooser(const std::vector<ChoosingBlock>& blocks, const std::vector<int64_t>& limits,
          const TryKeepings& tries)
      : blocks_(blocks), limits_(limits), tries_(tries) {}

  absl::StatusOr<KeepingChoice> Choose() {
    choice_.keepings.assign(blocks_.size(), Keeping::kKeep);
    ASSIGN_OR_RETURN(choice_.plain, tries_(choice_.keepings));
    choice_.tried = choice_.plain;
    RETURN_IF_ERROR(FindLeast());
    for (size_t stage = 0; stage < limits_.size(); ++stage) {
      if (choice_.least_bytes[stage] <= limits_[stage]) continue;
      choice_.keepings = least_;
      ASSIGN_OR_RETURN(choice_.tried, tries_(least_));
      return choice_;
    }
    choice_.fits = true;
    for (size_t stage = 0; stage < limits_.size(); ++stage) {
      RETURN_IF_ERROR(Free(static_cast<int>(stage)));
    }
    RETURN_IF_ERROR(Refine());
    return choice_;
  }

 private:
  // Option of a block; null: it keeps all.
  using Option = const KeepingOption*;
  struct Step {
    size_t block = 0;
    Option option = nullptr;
    double SecondsForByte() const {
      return option->seconds / static_cast<double>(option->freed_bytes);
    }
  };

  bool Fits(const TriedKeepings& tried) const {
    for (size_t stage = 0; stage < limits_.size(); ++stage) {
      if (tried.stage_bytes[stage] > limits_[stage]) return false;
    }
    return true;
  }

  // Sets the blocks of a stage to those of another choice.
  void Take(int stage, const std::vector<Keeping>& from, std::vector<Keeping>* to) const {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].stage == stage) (*to)[i] = from[i];
    }
  }

  // Finds what leaves least to each stage: that all its blocks do what frees most, or that all
  // which can do the same. A block at work has all its tensors, so freeing them need not be best.
  absl::Status FindLeast() {
    least_ = choice_.keepings;
    choice_.least_bytes = choice_.plain.stage_bytes;
    std::vector<std::vector<Keeping>> all = {FreeingMost()};
    for (const Keeping keeping : {Keeping::kRecompute, Keeping::kStash, Keeping::kSwap}) {
      all.push_back(AllThatCan(keeping));
    }
    for (const std::vector<Keeping>& one : all) {
      ASSIGN_OR_RETURN(const TriedKeepings tried, tries_(one));
      for (size_t stage = 0; stage < limits_.size(); ++stage) {
        if (tried.stage_bytes[stage] >= choice_.least_bytes[stage]) continue;
        choice_.least_bytes[stage] = tried.stage_bytes[stage];
        Take(static_cast<int>(stage), one, &least_);
      }
    }
    return absl::OkStatus();
  }

  std::vector<Keeping> FreeingMost() const {
    std::vector<Keeping> keepings(blocks_.size(), Keeping::kKeep);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      int64_t most = 0;
      for (const KeepingOption& option : blocks_[i].options) {
        if (option.freed_bytes <= most) continue;
        most = option.freed_bytes;
        keepings[i] = option.does;
      }
    }
    return keepings;
  }

  std::vector<Keeping> AllThatCan(Keeping keeping) const {
    std::vector<Keeping> keepings(blocks_.size(), Keeping::kKeep);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      for (const KeepingOption& option : blocks_[i].options) {
        if (option.does == keeping) keepings[i] = keeping;
      }
    }
    return keepings;
  }

  // Returns all options of a stage that free anything, cheapest first.
  std::vector<Step> StepsOf(int stage) const {
    std::vector<Step> steps;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].stage != stage) continue;
      for (const KeepingOption& option : blocks_[i].options) {
        if (option.freed_bytes > 0) steps.push_back({i, &option});
      }
    }
    std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
      return a.SecondsForByte() < b.SecondsForByte();
    });
    return steps;
  }

  // Lets blocks of a stage do something else until it fits. Tries only what may suffice by the
  // estimates.
  absl::Status Free(int stage) {
    const int64_t limit = limits_[stage];
    if (choice_.tried.stage_bytes[stage] <= limit) return absl::OkStatus();
    std::vector<Option> chosen(blocks_.size(), nullptr);
    int64_t expected = choice_.tried.stage_bytes[stage];
    for (const Step& step : StepsOf(stage)) {
      const int64_t before = chosen[step.block] == nullptr ? 0 : chosen[step.block]->freed_bytes;
      if (step.option->freed_bytes <= before) continue;
      expected -= step.option->freed_bytes - before;
      chosen[step.block] = step.option;
      choice_.keepings[step.block] = step.option->does;
      if (expected > limit) continue;
      ASSIGN_OR_RETURN(choice_.tried, tries_(choice_.keepings));
      if (choice_.tried.stage_bytes[stage] <= limit) return absl::OkStatus();
    }
    Take(stage, least_, &choice_.keepings);
    ASSIGN_OR_RETURN(choice_.tried, tries_(choice_.keepings));
    return absl::OkStatus();
  }

  // Lets one block after another do something else, the costliest first.
  absl::Status Refine() {
    std::vector<Step> costliest;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      for (const KeepingOption& option : blocks_[i].options) {
        if (option.does == choice_.keepings[i]) costliest.push_back({i, &option});
      }
    }
    std::stable_sort(costliest.begin(), costliest.end(), [](const Step& a, const Step& b) {
      return a.option->seconds > b.option->seconds;
    });
    for (const Step& step : costliest) {
      RETURN_IF_ERROR(TryInstead(step.block, Keeping::kKeep));
      for (const KeepingOption& option : blocks_[step.block].options) {
        RETURN_IF_ERROR(TryInstead(step.block, option.does));
      }
    }
    return absl::OkStatus();
  }

  absl::Status TryInstead(size_t block, Keeping keeping) {
    if (choice_.keepings[block] == keeping) return absl::OkStatus();
    std::vector<Keeping> other = choice_.keepings;
    other[block] = keeping;
    ASSIGN_OR_RETURN(const TriedKeepings tried, tries_(other));
    // A step that takes as long and keeps more is better.
    const double most = choice_.tried.step_seconds * (1 - kLeastGain);
    const bool is_better =
        tried.step_seconds < most ||
        (keeping == Keeping::kKeep && tried.step_seconds <= choice_.tried.step_seconds);
    if (!Fits(tried) || !is_better) return absl::OkStatus();
    choice_.keepings = std::move(other);
    choice_.tried = tried;
    return absl::OkStatus();
  }

  const std::vector<ChoosingBlock>& blocks_;
  const std::vector<int64_t>& limits_;
  const TryKeepings& tries_;
  std::vector<Keeping> least_;
  KeepingChoice choice_;
};

}  // namespace

absl::StatusOr<KeepingChoice> ChooseKeepings(const std::vector<ChoosingBlock>& blocks,
                                             const std::vector<int64_t>& limits,
                                             const TryKeepings& tries) {
  return Chooser(blocks, limits, tries).Choose();
}

}  // namespace thinwire
