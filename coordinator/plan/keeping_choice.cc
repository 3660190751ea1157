#include "coordinator/plan/keeping_choice.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/status.h"

namespace thinwire {
namespace {

// A time that gets shorter by less than this share is not worth another choice.
constexpr double kLeastGain = 1e-6;

// Weights of copies against computation that are tried, besides 0, up to 1.
constexpr int kWeights = 8;

// A choice, and what comes of it.
struct Trial {
  std::vector<Keeping> keepings;
  TriedKeepings tried;
};

class Chooser {
 public:
  Chooser(const std::vector<ChoosingBlock>& blocks, const std::vector<int64_t>& limits,
          const TryKeepings& tries)
      : blocks_(blocks), limits_(limits), tries_(tries) {}

  absl::StatusOr<KeepingChoice> Choose() {
    KeepingChoice choice;
    const std::vector<Keeping> keep(blocks_.size(), Keeping::kKeep);
    ASSIGN_OR_RETURN(const Trial plain, Try(keep));
    choice.plain = plain.tried;
    ASSIGN_OR_RETURN(const Trial least, FindLeast(plain));
    choice.least_bytes = least.tried.stage_bytes;
    choice.fits = Fits(least.tried);
    Trial best = least;
    if (choice.fits) {
      ASSIGN_OR_RETURN(best, Fit(plain, least));
      until_ = std::max(kMostTries, tried_ + kMostTries / 4);
      RETURN_IF_ERROR(Refine(&best));
    }
    choice.keepings = std::move(best.keepings);
    choice.tried = std::move(best.tried);
    return choice;
  }

 private:
  struct Move {
    size_t block = 0;
    Keeping does = Keeping::kKeep;
  };
  // On which terms blocks free bytes.
  struct Terms {
    int stage = 0;
    double weight = 0;  // of copies against computation
    Keeping without = Keeping::kKeep;
  };
  struct Step {
    size_t block = 0;
    const KeepingOption* option = nullptr;
    int64_t freed_bytes = 0;
  };

  absl::StatusOr<Trial> Try(std::vector<Keeping> keepings) {
    ++tried_;
    ASSIGN_OR_RETURN(TriedKeepings tried, tries_(keepings));
    return Trial{std::move(keepings), std::move(tried)};
  }

  absl::StatusOr<Trial> Try(const Trial& from, const Move& move) {
    std::vector<Keeping> keepings = from.keepings;
    keepings[move.block] = move.does;
    return Try(std::move(keepings));
  }

  bool HasTries() const { return tried_ < until_; }

  bool Fits(const TriedKeepings& tried, int stage) const {
    return tried.stage_bytes[stage] <= limits_[stage];
  }
  bool Fits(const TriedKeepings& tried) const {
    for (int stage = 0; stage < stages(); ++stage) {
      if (!Fits(tried, stage)) return false;
    }
    return true;
  }

  int stages() const { return static_cast<int>(limits_.size()); }

  // Returns a choice whose blocks of one stage do as in `other`.
  std::vector<Keeping> Mixed(const std::vector<Keeping>& keepings, int stage,
                             const std::vector<Keeping>& other) const {
    std::vector<Keeping> mixed = keepings;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].stage == stage) mixed[i] = other[i];
    }
    return mixed;
  }

  // Returns all changes of one block of a stage. Of blocks that are alike, the first counts.
  std::vector<Move> MovesOf(int stage, const std::vector<Keeping>& keepings) const {
    std::vector<Move> moves;
    std::set<std::tuple<int, Keeping>> seen;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].stage != stage || !seen.insert({blocks_[i].kind, keepings[i]}).second)
        continue;
      if (keepings[i] != Keeping::kKeep) moves.push_back({i, Keeping::kKeep});
      for (const KeepingOption& option : blocks_[i].options) {
        if (option.does != keepings[i]) moves.push_back({i, option.does});
      }
    }
    return moves;
  }

  std::vector<Keeping> AllThatCan(Keeping does) const {
    std::vector<Keeping> keepings(blocks_.size(), Keeping::kKeep);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      for (const KeepingOption& option : blocks_[i].options) {
        if (option.does == does) keepings[i] = does;
      }
    }
    return keepings;
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

  // Finds what leaves little to each stage: all blocks do what frees most, or all that can do the
  // same. In a stage that does not fit so, one block after another does what leaves less. A block
  // at work has all its tensors, so what frees most of each block need not be best.
  absl::StatusOr<Trial> FindLeast(const Trial& plain) {
    Trial least = plain;
    std::vector<std::vector<Keeping>> beginnings = {FreeingMost()};
    for (const Keeping does : {Keeping::kRecompute, Keeping::kStash, Keeping::kSwap}) {
      beginnings.push_back(AllThatCan(does));
    }
    for (const std::vector<Keeping>& beginning : beginnings) {
      ASSIGN_OR_RETURN(const Trial all, Try(beginning));
      for (int stage = 0; stage < stages(); ++stage) {
        if (all.tried.stage_bytes[stage] >= least.tried.stage_bytes[stage]) continue;
        ASSIGN_OR_RETURN(least, Try(Mixed(least.keepings, stage, all.keepings)));
      }
    }
    const int unfit = CountUnfit(least.tried);
    for (int stage = 0; stage < stages(); ++stage) {
      if (Fits(least.tried, stage)) continue;
      AllowShare(unfit);
      RETURN_IF_ERROR(Improve(stage, &least, [&](const Trial& now, const Trial& other) {
        return static_cast<double>(now.tried.stage_bytes[stage] - other.tried.stage_bytes[stage]);
      }));
    }
    return least;
  }

  // Allows one of so many stages its share of the tries for one of four parts of the search.
  void AllowShare(int of_stages) { until_ = tried_ + kMostTries / (4 * std::max(1, of_stages)); }

  int CountUnfit(const TriedKeepings& tried) const {
    int count = 0;
    for (int stage = 0; stage < stages(); ++stage) count += Fits(tried, stage) ? 0 : 1;
    return count;
  }

  // Returns by how much one trial is better than another; 0 or less: it is not.
  using Gain = std::function<double(const Trial& now, const Trial& other)>;

  // Makes the best change of a block of a stage again and again, until none is one.
  absl::Status Improve(int stage, Trial* now, const Gain& gain) {
    while (true) {
      double most = 0;
      std::optional<Trial> best;
      for (const Move& move : MovesOf(stage, now->keepings)) {
        if (!HasTries()) break;
        ASSIGN_OR_RETURN(Trial other, Try(*now, move));
        const double better = gain(*now, other);
        if (better <= most) continue;
        most = better;
        best = std::move(other);
      }
      if (!best) return absl::OkStatus();
      *now = *std::move(best);
    }
  }

  static void AddNew(const std::vector<Keeping>& one, std::vector<std::vector<Keeping>>* all) {
    if (std::find(all->begin(), all->end(), one) == all->end()) all->push_back(one);
  }

  // Lets blocks of stages that all keep do as makes them fit, and as keeps each busy for the least
  // time: first by estimates, which takes few tries, then block by block.
  absl::StatusOr<Trial> Fit(const Trial& plain, const Trial& least) {
    Trial now = plain;
    const int unfit = CountUnfit(plain.tried);
    std::vector<std::vector<std::vector<Keeping>>> found(stages());
    for (int stage = 0; stage < stages(); ++stage) {
      if (Fits(now.tried, stage)) continue;
      AllowShare(unfit);
      ASSIGN_OR_RETURN(found[stage], FitByEstimates(stage, least, &now));
    }
    for (int stage = 0; stage < stages(); ++stage) {
      AllowShare(unfit);
      for (const std::vector<Keeping>& beginning : found[stage]) {
        if (!HasTries()) break;
        ASSIGN_OR_RETURN(Trial other, Try(Mixed(now.keepings, stage, beginning)));
        RETURN_IF_ERROR(Spend(stage, &other));
        if (IsBusyForLess(stage, other, now)) now = std::move(other);
      }
    }
    return now;
  }

  // Lets a stage do the best of what Free finds with all options and without each of them, or the
  // least. Returns all of these choices, none twice.
  absl::StatusOr<std::vector<std::vector<Keeping>>> FitByEstimates(int stage, const Trial& least,
                                                                   Trial* now) {
    std::vector<std::vector<Keeping>> found;
    ASSIGN_OR_RETURN(const Trial of_least, Try(Mixed(now->keepings, stage, least.keepings)));
    std::optional<Trial> best;
    for (const Keeping without :
         {Keeping::kKeep, Keeping::kRecompute, Keeping::kStash, Keeping::kSwap}) {
      ASSIGN_OR_RETURN(std::optional<Trial> freed, FreeAtBestWeight(stage, without, *now));
      if (!freed) continue;
      AddNew(freed->keepings, &found);
      if (!best || IsBusyForLess(stage, *freed, *best)) best = std::move(freed);
    }
    AddNew(of_least.keepings, &found);
    *now = best && !IsBusyForLess(stage, of_least, *best) ? *std::move(best) : of_least;
    return found;
  }

  // Returns what keeps a stage busy for the least time of what Free finds at all weights; null:
  // the stage fits at none.
  absl::StatusOr<std::optional<Trial>> FreeAtBestWeight(int stage, Keeping without,
                                                        const Trial& from) {
    std::optional<Trial> best;
    for (int weight = 0; weight <= kWeights && HasTries(); ++weight) {
      ASSIGN_OR_RETURN(Trial freed,
                       Free({stage, static_cast<double>(weight) / kWeights, without}, from));
      if (!Fits(freed.tried, stage)) continue;
      if (!best || IsBusyForLess(stage, freed, *best)) best = std::move(freed);
    }
    return best;
  }

  static bool IsBusyForLess(int stage, const Trial& one, const Trial& other) {
    return one.tried.stage_seconds[stage] < other.tried.stage_seconds[stage] * (1 - kLeastGain);
  }

  // Returns `from` with blocks of a stage that do something else, until it fits or nothing is left.
  // Tries only what may suffice by the estimates.
  absl::StatusOr<Trial> Free(const Terms& terms, const Trial& from) {
    const int stage = terms.stage;
    std::vector<const KeepingOption*> does(blocks_.size(), nullptr);
    int64_t expected = from.tried.stage_bytes[stage];
    Trial now = from;
    while (const std::optional<Step> step = CheapestStep(terms, does)) {
      expected -= step->freed_bytes;
      does[step->block] = step->option;
      now.keepings[step->block] = step->option->does;
      if (expected > limits_[stage]) continue;
      ASSIGN_OR_RETURN(now, Try(std::move(now.keepings)));
      if (Fits(now.tried, stage) || !HasTries()) break;
    }
    return now;
  }

  // Returns the option that costs least for each byte that it frees more than what a block does.
  std::optional<Step> CheapestStep(const Terms& terms,
                                   const std::vector<const KeepingOption*>& does) const {
    const auto cost = [&terms](const KeepingOption& option) {
      return (1 - terms.weight) * option.seconds + terms.weight * option.moving_seconds;
    };
    std::optional<Step> cheapest;
    double least = 0;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].stage != terms.stage) continue;
      for (const KeepingOption& option : blocks_[i].options) {
        if (option.does == terms.without) continue;
        const KeepingOption now = does[i] == nullptr ? KeepingOption() : *does[i];
        const int64_t freed = option.freed_bytes - now.freed_bytes;
        if (freed <= 0) continue;
        const double ratio = (cost(option) - cost(now)) / static_cast<double>(freed);
        if (cheapest && ratio >= least) continue;
        least = ratio;
        cheapest = Step{i, &option, freed};
      }
    }
    return cheapest;
  }

  // Lets blocks of a stage, which fits, do what saves the most seconds for each byte.
  absl::Status Spend(int stage, Trial* now) {
    return Improve(stage, now, [&](const Trial& before, const Trial& other) {
      const double saved = -SecondsMore(before, other, stage);
      const bool is_worth = saved > kLeastGain * before.tried.stage_seconds[stage];
      if (!Fits(other.tried, stage) || !is_worth) return 0.0;
      const int64_t more = other.tried.stage_bytes[stage] - before.tried.stage_bytes[stage];
      return saved / static_cast<double>(std::max<int64_t>(1, more));
    });
  }

  static double SecondsMore(const Trial& before, const Trial& other, int stage) {
    return other.tried.stage_seconds[stage] - before.tried.stage_seconds[stage];
  }

  // Lets blocks do something else where a step gets shorter, or is as long and a block keeps all
  // again: one block, or two of a stage if it does not fit with the first alone.
  absl::Status Refine(Trial* best) {
    for (bool changed = true; changed && HasTries();) {
      changed = false;
      for (int stage = 0; stage < stages(); ++stage) {
        ASSIGN_OR_RETURN(const bool better, RefineStage(stage, best));
        changed |= better;
      }
    }
    return absl::OkStatus();
  }

  // Returns whether anything got better.
  absl::StatusOr<bool> RefineStage(int stage, Trial* best) {
    bool changed = false;
    for (const Move& move : MovesOf(stage, best->keepings)) {
      if (!HasTries()) break;
      ASSIGN_OR_RETURN(Trial other, Try(*best, move));
      if (!IsBetter(other, *best, move)) continue;
      if (!Fits(other.tried)) {
        ASSIGN_OR_RETURN(const bool room, MakeRoom(stage, move.block, other, best));
        changed |= room;
      } else {
        *best = std::move(other);
        changed = true;
      }
    }
    return changed;
  }

  // Lets a block of a stage do something else than in `crowded`, so that it fits and is better than
  // `best`. Returns whether one could.
  absl::StatusOr<bool> MakeRoom(int stage, size_t but, const Trial& crowded, Trial* best) {
    for (const Move& move : MovesOf(stage, crowded.keepings)) {
      if (!HasTries() || move.block == but) continue;
      ASSIGN_OR_RETURN(Trial other, Try(crowded, move));
      if (!Fits(other.tried) || !IsShorter(other, *best)) continue;
      *best = std::move(other);
      return true;
    }
    return false;
  }

  static bool IsShorter(const Trial& one, const Trial& other) {
    return one.tried.step_seconds < other.tried.step_seconds * (1 - kLeastGain);
  }

  static bool IsBetter(const Trial& moved, const Trial& now, const Move& move) {
    return IsShorter(moved, now) ||
           (move.does == Keeping::kKeep && moved.tried.step_seconds <= now.tried.step_seconds);
  }

  const std::vector<ChoosingBlock>& blocks_;
  const std::vector<int64_t>& limits_;
  const TryKeepings& tries_;
  int tried_ = 0, until_ = kMostTries;
};

}  // namespace

absl::StatusOr<KeepingChoice> ChooseKeepings(const std::vector<ChoosingBlock>& blocks,
                                             const std::vector<int64_t>& limits,
                                             const TryKeepings& tries) {
  return Chooser(blocks, limits, tries).Choose();
}

}  // namespace thinwire
