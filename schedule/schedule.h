// Pipeline schedules as data: what one stage does in one step, in order. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace thinwire {

enum class ScheduleKind {
  kGPipe,                  // all forwards, then all backwards (Huang et al., NeurIPS 2019)
  kOneForwardOneBackward,  // PipeDream-Flush (Narayanan et al., SC 2021)
  // ZB-H1 (Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024): 1F1B whose backwards are split.
  // The gradient of a stage's input is on its way before those of its weights are computed, which
  // fill what would be bubbles: (stages - 1)(F + B - W) of a step is idle at each stage where 1F1B
  // idles (stages - 1)(F + B + W), if there are as many microbatches as stages and B and F take
  // no less than W.
  kZeroBubble,
  // Interleaved 1F1B (Narayanan et al., SC 2021): a stage has several chunks of the model, chunk i
  // of stage s being number i stages + s of the model's, and takes turns on them. Its bubble is
  // that of 1F1B divided by the chunks of a stage, with microbatches in a multiple of the stages.
  kInterleaved,
  // TeraPipe (Li et al., ICML 2021): the sequences of a microbatch are cut into slices of equally
  // many positions, which go through the stages one behind the other, as a position needs those
  // before it only: forward the first slice first, backward the last. Microbatches take turns as in
  // 1F1B. A pipeline is full after stages - 1 slices in place of as many microbatches.
  kTeraPipe
};

// Where sequences are cut into slices, a unit is a slice of a microbatch: it has the number
// microbatch x slices + slice, and stands wherever a microbatch stands otherwise.
struct Action {
  enum class Kind {
    kForward,
    kBackward,       // of the input and of the weights
    kBackwardInput,  // B: the gradient of the stage's input, and of all parameters but those that W
                     // is for
    kBackwardWeight  // W: the gradients of the weights that products and convolutions have
  };
  Kind kind;
  int microbatch;  // from 0; a unit
  int chunk = 0;   // of the stage, from 0

  friend bool operator==(const Action& a, const Action& b) {
    return a.kind == b.kind && a.microbatch == b.microbatch && a.chunk == b.chunk;
  }
};

// "gpipe", "1f1b", "zero_bubble", "interleaved", "terapipe"; the inverse gives InvalidArgument with
// the known ones.
const char* Name(ScheduleKind kind);
absl::Status FromName(const std::string& name, ScheduleKind* to);
std::vector<ScheduleKind> AllSchedules();

// "forward", "backward", "backward_input", "backward_weight".
const char* Name(Action::Kind kind);

// Whether its backwards are kBackwardInput and kBackwardWeight; otherwise they are kBackward.
bool SplitsBackward(ScheduleKind kind);

// Whether stages may have several chunks. With one chunk each it is kOneForwardOneBackward.
bool Interleaves(ScheduleKind kind);

// Whether sequences may be cut into several slices. With one it is kOneForwardOneBackward.
bool Slices(ScheduleKind kind);

// The forwards of a batch in the order of every stage: `stages` microbatches through its first
// chunk, the same through the second, and so on, and then the next as many.
std::vector<Action> Forwards(int stages, int microbatches, int chunks);

// The actions of `stage` (from 0) in one step, with so many chunks a stage and slices a microbatch:
// 1, but where the schedule Interleaves or Slices. Every schedule runs each microbatch forward once
// and backward once through each chunk, whole or in both parts, and each of these in ascending
// order, but for the backwards of a microbatch's slices, which descend. A forward needs the
// activation of the chunk before it in the model, which is at the stage before (the last one's next
// is the first), a kBackward or kBackwardInput the gradient of the chunk behind it, a
// kBackwardWeight nothing of others; sends are part of an action.
std::vector<Action> StageActions(ScheduleKind kind, int stage, int stages, int microbatches,
                                 int chunks = 1, int slices = 1);

// The unit whose backward is the `place`-th of a step, from 0.
inline int UnitOfBackward(int place, int slices) {
  return place - place % slices + slices - 1 - place % slices;
}

// Microbatches, or units, that a chunk holds something of at one time.
struct Held {
  int in_flight = 0;  // forward but not yet backward (its input part, where it is split)
  int waiting = 0;  // through kBackwardInput, not yet through kBackwardWeight; 0 in whole backwards
};

// When `stage` is fullest: whatever one microbatch of either kind takes at each chunk, it takes no
// more at any time than in one of these states, all of which occur. A state has one Held for each
// chunk. With 1F1B stages - stage are in flight. With zero_bubble up to as many are, up to
// stage + 1 wait, and never more than `stages` do either: as many as 1F1B has in flight at its
// first stage. With c chunks, c > 1, they have up to (c - 1) stages + 2 (stages - 1 - stage) + 1 in
// flight between them, each of which holds a chunk's part of a stage only. With slices the units of
// as many microbatches as 1F1B has are in flight.
std::vector<std::vector<Held>> FullestStates(ScheduleKind kind, int stage, int stages,
                                             int microbatches, int chunks = 1, int slices = 1);

// The most messages that are sent but not yet consumed (by the start of the action that needs
// them) at any time, across `boundary` (between chunks `boundary` and `boundary` + 1 of the model)
// in either direction. A receive queue of this capacity never overflows and never blocks the
// schedule: one more message is the peer's error.
//
// It is the most that are in flight at the upstream chunk, which ends at the boundary and starts
// its traffic:
// - Activations: each unconsumed one belongs to a microbatch that the upstream chunk has forward
//   and cannot have backward, as its gradient has not left downstream. All of them wait there
//   when the downstream stage has not begun.
// - Gradients: each unconsumed one belongs to a microbatch forward and not yet backward upstream.
//   All of them wait there when the downstream stage is done and the upstream one has yet to run
//   its last backwards.
// Where stages have several chunks fewer may be all that come.
int QueueCapacity(ScheduleKind kind, int boundary, int stages, int microbatches, int chunks = 1,
                  int slices = 1);

// True if `stage` runs the backward of `microbatch` in the cool-down of 1F1B, which is that of
// zero_bubble too: no forward is left there to run meanwhile, so whoever waits for this gradient
// waits idle. That is for the last stages - 1 - stage microbatches.
bool InCoolDown(int stage, int stages, int microbatches, int microbatch);

// "F0 F1 B0 F2 B1 B2"; an input part of a backward is spelled B too, a weight part W. Of chunks
// behind a stage's first: "F0.1".
std::string Spelled(const std::vector<Action>& actions);

}  // namespace thinwire
