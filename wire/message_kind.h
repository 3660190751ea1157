// The kinds of message that cross a cut, by their phase. A row in message_kind.cc tells what a kind
// carries and what it is called; whoever treats one kind unlike another asks here.
#pragma once

#include "proto/boundary.pb.h"

namespace thinwire {

enum class Content {
  kSamples,       // activations and gradients of a microbatch's samples; rows of a parameter
  kSumOfSquares,  // a number and no tensor, once in a step
  kBasis,         // a gradient of the basis, which has no samples, once in a step
  kNothing,       // no tensor
};

enum class Purpose { kTraining, kEvaluation, kText };

struct MessageKind {
  Phase phase;
  Content content;
  Purpose purpose;  // of the step or pass that it crosses for
  // The first words of MessageKey::ToString. Those of samples name the pass; others are followed
  // by where the cut is, which the direction decides.
  const char* name;
  const char* with_activations = "";
  const char* against_activations = "";
};

// Returns the row of PHASE_UNSPECIFIED, an unknown phase, for a number that is no phase.
const MessageKind& KindOf(Phase phase);

inline bool HasSamples(Phase phase) { return KindOf(phase).content == Content::kSamples; }
inline bool HasSumOfSquares(Phase phase) { return KindOf(phase).content == Content::kSumOfSquares; }

// True for all that crosses for a training step, in its passes and behind them.
inline bool IsPartOfTraining(Phase phase) { return KindOf(phase).purpose == Purpose::kTraining; }

// True for the forward and backward passes of a training step, and for what replicas exchange
// behind them. Their messages alone change state, follow the schedule of levels, and are traced,
// captured and measured.
inline bool IsTrainingPass(Phase phase) { return IsPartOfTraining(phase) && HasSamples(phase); }

// True where the receiver of an activation acknowledges it with a message without a tensor, as no
// gradient will answer it. The next message of a text waits for the coordinator anyway.
inline bool IsAcknowledged(Phase phase) { return KindOf(phase).purpose == Purpose::kEvaluation; }

// True for what replicas of a stage exchange. No such message crosses a cut: its `cut` is the
// number of a piece (models/pieces.h), its `microbatch` that of a replica.
inline bool IsOfReplicas(Phase phase) {
  return phase >= PHASE_CONTRIBUTION && phase <= PHASE_SECOND_AVERAGE;
}

// True for what an owner sends to all: a sum, or a factor of it.
inline bool IsOfSum(Phase phase) { return phase == PHASE_AVERAGE || phase == PHASE_SECOND_AVERAGE; }

// True for what only bounds the messages under way. It counts as no traffic.
inline bool IsTaken(Phase phase) { return KindOf(phase).content == Content::kNothing; }

bool HasTensor(Phase phase, Direction direction);

// True where a sample may have fewer positions than the boundary says.
inline bool MayHaveFewerPositions(Phase phase) { return KindOf(phase).purpose == Purpose::kText; }

// True for passes over the samples of the training data.
inline bool ReadsTrainingData(Phase phase) {
  return phase == PHASE_TRAIN || phase == PHASE_RECALIBRATE || phase == PHASE_CALIBRATE;
}

// True where codecs keep what a message leaves to the next ones.
inline bool LeavesCarry(Phase phase) { return IsTrainingPass(phase) || phase == PHASE_CALIBRATE; }

// True for the passes that batch norm statistics are estimated in anew.
inline bool Recalibrates(Phase phase) { return phase == PHASE_RECALIBRATE; }

}  // namespace thinwire
