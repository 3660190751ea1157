#include "schedule/schedule.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr Named<ScheduleKind> kScheduleNames[] = {{ScheduleKind::kGPipe, "gpipe"},
                                                  {ScheduleKind::kOneForwardOneBackward, "1f1b"},
                                                  {ScheduleKind::kZeroBubble, "zero_bubble"},
                                                  {ScheduleKind::kInterleaved, "interleaved"},
                                                  {ScheduleKind::kTeraPipe, "terapipe"}};

constexpr Named<Action::Kind> kActionNames[] = {{Action::Kind::kForward, "forward"},
                                                {Action::Kind::kBackward, "backward"},
                                                {Action::Kind::kBackwardInput, "backward_input"},
                                                {Action::Kind::kBackwardWeight, "backward_weight"}};

const char* Letter(Action::Kind kind) {
  if (kind == Action::Kind::kForward) return "F";
  return kind == Action::Kind::kBackwardWeight ? "W" : "B";
}

// Returns by how many passes the forwards of `stage` run ahead of its backwards; there are `passes`
// in all. With several chunks (Narayanan et al.) the warm-up is long enough that the first backward
// of each stage finds its gradient just received.
int MostAhead(ScheduleKind kind, int stage, int stages, int passes, int chunks) {
  if (kind == ScheduleKind::kGPipe) return passes;
  const int behind = stages - 1 - stage;
  const int ahead = chunks == 1 ? behind + 1 : (chunks - 1) * stages + 2 * behind + 1;
  return std::min(ahead, passes);
}

// Account of what a stage holds after each action; one Held for each chunk.
class Holding {
 public:
  Holding(bool splits, int chunks) : splits_(splits), held_(chunks) {}

  void Run(const Action& action) {
    Held& held = held_[action.chunk];
    if (action.kind == Action::Kind::kForward) {
      ++held.in_flight;
    } else if (action.kind == Action::Kind::kBackwardWeight) {
      --held.waiting;
    } else {
      --held.in_flight;
      held.waiting += splits_;
    }
  }
  const std::vector<Held>& held() const { return held_; }

 private:
  const bool splits_;
  std::vector<Held> held_;
};

// Replaces each action by those of the microbatch's slices.
std::vector<Action> InSlices(const std::vector<Action>& actions, int slices) {
  std::vector<Action> units;
  for (const Action& action : actions) {
    const int first = action.microbatch * slices;
    for (int i = 0; i < slices; ++i) {
      const bool forward = action.kind == Action::Kind::kForward;
      units.push_back(
          {action.kind, forward ? first + i : UnitOfBackward(first + i, slices), action.chunk});
    }
  }
  return units;
}

bool HoldsNoMore(const std::vector<Held>& a, const std::vector<Held>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](const Held& one, const Held& other) {
    return one.in_flight <= other.in_flight && one.waiting <= other.waiting;
  });
}

}  // namespace

NameTable<ScheduleKind> TableOf(ScheduleKind) { return {"schedule", kScheduleNames}; }
NameTable<Action::Kind> TableOf(Action::Kind) { return {"action", kActionNames}; }

bool SplitsBackward(ScheduleKind kind) { return kind == ScheduleKind::kZeroBubble; }

bool Interleaves(ScheduleKind kind) { return kind == ScheduleKind::kInterleaved; }

bool Slices(ScheduleKind kind) { return kind == ScheduleKind::kTeraPipe; }

std::vector<Action> Forwards(int stages, int microbatches, int chunks) {
  std::vector<Action> forwards;
  for (int first = 0; first < microbatches; first += stages) {
    const int end = std::min(first + stages, microbatches);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int m = first; m < end; ++m) forwards.push_back({Action::Kind::kForward, m, chunk});
    }
  }
  return forwards;
}

// All schedules first run forwards up to a bound, then one backward before each further forward,
// then the remaining backwards. For GPipe the bound is all passes. Backwards come in the order of
// forwards, the last chunk first. The weight part of a split backward runs as soon as more of them
// wait than stages come before this one, and at the end. Later stages, for whose gradients others
// wait longest, put off the most.
//
// If stages have several chunks, the order is that of a full last group of microbatches, without
// those that do not exist. Removing actions from an order without a deadlock causes none.
//
// Slices take the place of their microbatch. An order that works with whole microbatches at every
// stage works with their parts, each of which needs fewer others.
std::vector<Action> StageActions(ScheduleKind kind, int stage, int stages, int microbatches,
                                 int chunks, int slices) {
  assert(0 <= stage && stage < stages && microbatches >= 1 && chunks >= 1 && slices >= 1);
  assert((chunks == 1 || Interleaves(kind)) && (slices == 1 || Slices(kind)));
  const int missing = chunks == 1 ? 0 : (stages - microbatches % stages) % stages;
  const std::vector<Action> forwards = Forwards(stages, microbatches + missing, chunks);
  const int passes = static_cast<int>(forwards.size());
  const int ahead = MostAhead(kind, stage, stages, passes, chunks);
  const bool splits = SplitsBackward(kind);
  std::vector<Action> actions;
  const auto add = [&](Action::Kind what, int pass) {
    const Action& of = forwards[pass];
    const int chunk = what == Action::Kind::kForward ? of.chunk : chunks - 1 - of.chunk;
    if (of.microbatch < microbatches) actions.push_back({what, of.microbatch, chunk});
  };
  int forward = 0, backward = 0, weights = splits ? 0 : passes;
  while (backward < passes || weights < passes) {
    if (splits && (backward - weights > stage || backward == passes)) {
      add(Action::Kind::kBackwardWeight, weights++);
    } else if (forward < passes && forward - backward < ahead) {
      add(Action::Kind::kForward, forward++);
    } else {
      add(splits ? Action::Kind::kBackwardInput : Action::Kind::kBackward, backward++);
    }
  }
  return slices == 1 ? actions : InSlices(actions, slices);
}

std::vector<std::vector<Held>> FullestStates(ScheduleKind kind, int stage, int stages,
                                             int microbatches, int chunks, int slices) {
  std::vector<std::vector<Held>> fullest;
  Holding holding(SplitsBackward(kind), chunks);
  for (const Action& action : StageActions(kind, stage, stages, microbatches, chunks, slices)) {
    holding.Run(action);
    const std::vector<Held>& now = holding.held();
    const auto is_below = [&now](const std::vector<Held>& one) { return HoldsNoMore(one, now); };
    const auto is_above = [&now](const std::vector<Held>& one) { return HoldsNoMore(now, one); };
    if (std::any_of(fullest.begin(), fullest.end(), is_above)) continue;
    fullest.erase(std::remove_if(fullest.begin(), fullest.end(), is_below), fullest.end());
    fullest.push_back(now);
  }
  return fullest;
}

int QueueCapacity(ScheduleKind kind, int boundary, int stages, int microbatches, int chunks,
                  int slices) {
  assert(0 <= boundary && boundary + 1 < stages * chunks);
  int most = 0;
  for (const std::vector<Held>& state :
       FullestStates(kind, boundary % stages, stages, microbatches, chunks, slices)) {
    most = std::max(most, state[boundary / stages].in_flight);
  }
  return most;
}

bool InCoolDown(int stage, int stages, int microbatches, int microbatch) {
  assert(0 <= stage && stage < stages && 0 <= microbatch && microbatch < microbatches);
  return microbatch + stages - 1 - stage >= microbatches;
}

std::string Spelled(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) {
    absl::StrAppend(&text, text.empty() ? "" : " ", Letter(action.kind), action.microbatch);
    if (action.chunk > 0) absl::StrAppend(&text, ".", action.chunk);
  }
  return text;
}

}  // namespace thinwire
