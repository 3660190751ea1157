#include "schedule/schedule.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/str_cat.h"
#include "base/enum_names.h"

namespace thinwire {
namespace {

constexpr Named<ScheduleKind> kScheduleNames[] = {{ScheduleKind::kGPipe, "gpipe"},
                                                  {ScheduleKind::kOneForwardOneBackward, "1f1b"}};

}  // namespace

const char* Name(ScheduleKind kind) { return NameIn(kScheduleNames, kind); }

absl::Status FromName(const std::string& name, ScheduleKind* to) {
  return FindName("schedule", name, kScheduleNames, to);
}

std::vector<ScheduleKind> AllSchedules() { return ValuesIn(kScheduleNames); }

// Both schedules first run up to their in-flight bound forward, then one backward before each
// further forward, then the rest backward; for GPipe the bound is everything.
std::vector<Action> StageActions(ScheduleKind kind, int stage, int stages, int microbatches) {
  const int in_flight = MaxInFlight(kind, stage, stages, microbatches);
  std::vector<Action> actions;
  int forward = 0, backward = 0;
  while (backward < microbatches) {
    if (forward < microbatches && forward - backward < in_flight) {
      actions.push_back({Action::Kind::kForward, forward++});
    } else {
      actions.push_back({Action::Kind::kBackward, backward++});
    }
  }
  return actions;
}

int MaxInFlight(ScheduleKind kind, int stage, int stages, int microbatches) {
  assert(0 <= stage && stage < stages && microbatches >= 1);
  if (kind == ScheduleKind::kGPipe) return microbatches;
  return std::min(stages - stage, microbatches);
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
    absl::StrAppend(&text, text.empty() ? "" : " ",
                    action.kind == Action::Kind::kForward ? "F" : "B", action.microbatch);
  }
  return text;
}

}  // namespace thinwire
