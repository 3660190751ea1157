// Pipeline schedules as data: the actions of a stage in one step, in order. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/enum_names.h"

namespace thinwire {

// Kinds of schedule.
enum class ScheduleKind {
  kGPipe,                  // all forwards, then all backwards (Huang et al., NeurIPS 2019)
  kOneForwardOneBackward,  // PipeDream-Flush (Narayanan et al., SC 2021)
  // ZB-H1 (Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024): 1F1B with split backwards. A
  // stage sends the gradient of its input before it computes those of its weights, which fill
  // bubbles. Each stage is idle for (stages - 1)(F + B - W) of a step, where 1F1B is idle for
  // (stages - 1)(F + B + W). That holds with at least as many microbatches as stages, if B and F
  // take no less than W.
  kZeroBubble,
  // Interleaved 1F1B (Narayanan et al., SC 2021): a stage takes turns on several chunks of the
  // model. Chunk i of stage s is chunk i x stages + s of the model. The bubble is that of 1F1B
  // divided by the chunks of a stage, if microbatches are a multiple of the stages.
  kInterleaved,
  // TeraPipe (Li et al., ICML 2021): the sequences of a microbatch are all cut into slices at the
  // same positions. Slices go through the stages one after the other, as a position needs only
  // those before it: forward the first slice first, backward the last slice first. Microbatches
  // take turns as in 1F1B. The pipeline is full after stages - 1 slices rather than as many
  // microbatches.
  kTeraPipe
};

// One action of a stage. If sequences are cut into slices, a unit, which is one slice of a
// microbatch, takes the place of a microbatch; its number is microbatch x slices + slice.
struct Action {
  enum class Kind {
    kForward,
    kBackward,       // gradients of the input and of the weights
    kBackwardInput,  // B: gradients of the stage's input and of all parameters that W leaves out
    kBackwardWeight  // W: gradients of the weights of matrix products and convolutions
  };
  Kind kind;
  int microbatch;  // number from 0; of a unit if there are slices
  int chunk = 0;   // of the stage, from 0

  friend bool operator==(const Action& a, const Action& b) {
    return a.kind == b.kind && a.microbatch == b.microbatch && a.chunk == b.chunk;
  }
};

// Returns the names "gpipe", "1f1b", "zero_bubble", "interleaved" and "terapipe"
// (base/enum_names.h).
NameTable<ScheduleKind> TableOf(ScheduleKind);

// Returns the names "forward", "backward", "backward_input" and "backward_weight".
NameTable<Action::Kind> TableOf(Action::Kind);

// Returns whether backwards are split into kBackwardInput and kBackwardWeight; otherwise they are
// kBackward.
bool SplitsBackward(ScheduleKind kind);

// Returns whether stages may have several chunks. With one chunk each it is kOneForwardOneBackward.
bool Interleaves(ScheduleKind kind);

// Returns whether sequences may be cut into several slices. With one it is kOneForwardOneBackward.
bool Slices(ScheduleKind kind);

// Returns the forwards of a batch in the order of every stage: `stages` microbatches through its
// first chunk, then the same through the second and so on, then the next `stages` microbatches.
std::vector<Action> Forwards(int stages, int microbatches, int chunks);

// Returns the actions of `stage` (from 0) in one step, with `chunks` per stage and `slices` per
// microbatch. Both are 1 unless the schedule Interleaves or Slices.
//
// Every schedule runs each microbatch once forward and once backward, whole or in both parts,
// through each chunk. Each kind of action is in ascending order of microbatches; only the backwards
// of a microbatch's slices descend. A forward needs the activation of the previous chunk of the
// model, which is at the previous stage (before the first stage comes the last). A kBackward or
// kBackwardInput needs the gradient of the next chunk; a kBackwardWeight needs nothing from others.
// Sending is part of an action.
std::vector<Action> StageActions(ScheduleKind kind, int stage, int stages, int microbatches,
                                 int chunks = 1, int slices = 1);

// Returns the unit whose backward is at `place` among a step's backwards, from 0.
inline int UnitOfBackward(int place, int slices) {
  return place - place % slices + slices - 1 - place % slices;
}

// Numbers of microbatches, or units, of which a chunk holds something at one time.
struct Held {
  int in_flight = 0;  // forward is done, backward (its input part, if it is split) is not
  int waiting = 0;    // kBackwardInput is done, kBackwardWeight is not; 0 without split backwards
};

// Returns the states in which `stage` is fullest; a state has one Held for each chunk. All of them
// occur. Whatever memory a microbatch of either kind takes at each chunk, the stage never takes
// more than in one of them.
//
// - 1F1B: stages - stage microbatches are in flight.
// - zero_bubble: up to as many are in flight and up to stage + 1 wait, but in all never more than
//   `stages`, which is what 1F1B has in flight at its first stage.
// - c > 1 chunks: all chunks together have up to (c - 1) stages + 2 (stages - 1 - stage) + 1 in
//   flight, each of which holds only a chunk's part of the stage.
// - Slices: the units of as many microbatches as in 1F1B are in flight.
std::vector<std::vector<Held>> FullestStates(ScheduleKind kind, int stage, int stages,
                                             int microbatches, int chunks = 1, int slices = 1);

// Returns the most messages that are ever sent but not yet consumed across `boundary`, between
// chunks `boundary` and `boundary` + 1 of the model, in either direction. A message is consumed
// when the action that needs it starts. A receive queue of this capacity never overflows and never
// blocks the schedule: one more message is the peer's error.
//
// It is the most that are in flight at the upstream chunk, which ends at the boundary and starts
// its traffic:
// - Activations: each unconsumed one belongs to a microbatch whose forward at the upstream chunk is
//   done. Its backward there cannot be, as its gradient has not left downstream. All of them wait
//   if the downstream stage has not begun.
// - Gradients: each unconsumed one belongs to a microbatch whose forward is done upstream and whose
//   backward is not. All of them wait if the downstream stage is done and the upstream one still
//   has its last backwards to run.
// If stages have several chunks, fewer may be the most that occur.
int QueueCapacity(ScheduleKind kind, int boundary, int stages, int microbatches, int chunks = 1,
                  int slices = 1);

// Returns whether `stage` runs the backward of `microbatch` in the cool-down of 1F1B, which is also
// that of zero_bubble. No forward is left to run then, so whoever waits for this gradient is idle.
// That holds for the last stages - 1 - stage microbatches.
bool InCoolDown(int stage, int stages, int microbatches, int microbatch);

// Returns "F0 F1 B0 F2 B1 B2". The input part of a backward is B, too, and its weight part W.
// Chunks after a stage's first are "F0.1".
std::string Spelled(const std::vector<Action>& actions);

}  // namespace thinwire
