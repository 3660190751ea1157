// Pipeline schedules as data: what one stage does in one step, in order. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace thinwire {

enum class ScheduleKind {
  kGPipe,                 // all forwards, then all backwards (Huang et al., NeurIPS 2019)
  kOneForwardOneBackward  // PipeDream-Flush (Narayanan et al., SC 2021)
};

struct Action {
  enum class Kind { kForward, kBackward };
  Kind kind;
  int microbatch;  // from 0

  friend bool operator==(const Action& a, const Action& b) {
    return a.kind == b.kind && a.microbatch == b.microbatch;
  }
};

// "gpipe", "1f1b"; the inverse gives InvalidArgument with the known ones.
const char* Name(ScheduleKind kind);
absl::Status FromName(const std::string& name, ScheduleKind* to);
std::vector<ScheduleKind> AllSchedules();

// The actions of `stage` (from 0) in one step. Every schedule runs each microbatch forward once
// and backward once, and both in ascending order. A forward needs the activation of the stage
// before it, a backward the gradient of the stage behind it; sends are part of an action.
std::vector<Action> StageActions(ScheduleKind kind, int stage, int stages, int microbatches);

// The most microbatches that are forward but not yet backward at `stage` at any time: what its
// queues must hold and what activation memory is for.
int MaxInFlight(ScheduleKind kind, int stage, int stages, int microbatches);

// The most messages that are sent but not yet consumed (by the start of the action that needs
// them) at any time, across `boundary` (between stages `boundary` and `boundary` + 1) in either
// direction. A receive queue of this capacity never overflows and never blocks the schedule: one
// more message is the peer's error.
//
// It is MaxInFlight of the upstream stage, which ends at the boundary and starts its traffic:
// - Activations: each unconsumed one belongs to a microbatch that the upstream stage has forward
//   and cannot have backward, as its gradient has not left downstream. All of them wait there
//   when the downstream stage has not begun.
// - Gradients: each unconsumed one belongs to a microbatch forward and not yet backward upstream.
//   All of them wait there when the downstream stage is done and the upstream one has yet to run
//   its last backwards.
int QueueCapacity(ScheduleKind kind, int boundary, int stages, int microbatches);

// True if `stage` runs the backward of `microbatch` in the cool-down of 1F1B: no forward is left
// there to run meanwhile, so whoever waits for this gradient waits idle. That is for the last
// stages - 1 - stage microbatches.
bool InCoolDown(int stage, int stages, int microbatches, int microbatch);

// "F0 F1 B0 F2 B1 B2"
std::string Spelled(const std::vector<Action>& actions);

}  // namespace thinwire
