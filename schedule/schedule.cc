#include "schedule/schedule.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/str_cat.h"
#include "base/enum_names.h"

namespace thinwire {
namespace {

constexpr Named<ScheduleKind> kScheduleNames[] = {{ScheduleKind::kGPipe, "gpipe"},
                                                  {ScheduleKind::kOneForwardOneBackward, "1f1b"},
                                                  {ScheduleKind::kZeroBubble, "zero_bubble"}};

constexpr Named<Action::Kind> kActionNames[] = {{Action::Kind::kForward, "forward"},
                                                {Action::Kind::kBackward, "backward"},
                                                {Action::Kind::kBackwardInput, "backward_input"},
                                                {Action::Kind::kBackwardWeight, "backward_weight"}};

const char* Letter(Action::Kind kind) {
  if (kind == Action::Kind::kForward) return "F";
  return kind == Action::Kind::kBackwardWeight ? "W" : "B";
}

}  // namespace

const char* Name(ScheduleKind kind) { return NameIn(kScheduleNames, kind); }

absl::Status FromName(const std::string& name, ScheduleKind* to) {
  return FindName("schedule", name, kScheduleNames, to);
}

std::vector<ScheduleKind> AllSchedules() { return ValuesIn(kScheduleNames); }

const char* Name(Action::Kind kind) { return NameIn(kActionNames, kind); }

bool SplitsBackward(ScheduleKind kind) { return kind == ScheduleKind::kZeroBubble; }

// All schedules first run up to their in-flight bound forward, then one backward before each
// further forward, then the rest backward; for GPipe the bound is everything. A split backward's
// weight part runs once more of them wait than stages stand before this one, and at the end: later
// stages, whose gradients others wait for longest, put off the most.
std::vector<Action> StageActions(ScheduleKind kind, int stage, int stages, int microbatches) {
  const int in_flight = MaxInFlight(kind, stage, stages, microbatches);
  const bool splits = SplitsBackward(kind);
  std::vector<Action> actions;
  int forward = 0, backward = 0, weights = splits ? 0 : microbatches;
  while (backward < microbatches || weights < microbatches) {
    if (splits && (backward - weights > stage || backward == microbatches)) {
      actions.push_back({Action::Kind::kBackwardWeight, weights++});
    } else if (forward < microbatches && forward - backward < in_flight) {
      actions.push_back({Action::Kind::kForward, forward++});
    } else {
      actions.push_back(
          {splits ? Action::Kind::kBackwardInput : Action::Kind::kBackward, backward++});
    }
  }
  return actions;
}

int MaxInFlight(ScheduleKind kind, int stage, int stages, int microbatches) {
  assert(0 <= stage && stage < stages && microbatches >= 1);
  if (kind == ScheduleKind::kGPipe) return microbatches;
  return std::min(stages - stage, microbatches);
}

std::vector<Held> FullestStates(ScheduleKind kind, int stage, int stages, int microbatches) {
  const int in_flight = MaxInFlight(kind, stage, stages, microbatches);
  if (!SplitsBackward(kind)) return {{in_flight, 0}};
  const int both = std::min(stages, microbatches), waiting = std::min(stage + 1, microbatches);
  return {{in_flight, both - in_flight}, {both - waiting, waiting}};
}

int QueueCapacity(ScheduleKind kind, int boundary, int stages, int microbatches) {
  assert(boundary + 1 < stages);
  return MaxInFlight(kind, /*stage=*/boundary, stages, microbatches);
}

bool InCoolDown(int stage, int stages, int microbatches, int microbatch) {
  assert(0 <= stage && stage < stages && 0 <= microbatch && microbatch < microbatches);
  return microbatch + stages - 1 - stage >= microbatches;
}

std::string Spelled(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) {
    absl::StrAppend(&text, text.empty() ? "" : " ", Letter(action.kind), action.microbatch);
  }
  return text;
}

}  // namespace thinwire
