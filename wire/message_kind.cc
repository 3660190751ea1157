#include "wire/message_kind.h"

#include <iterator>

namespace thinwire {
namespace {

// In the order of their numbers.
constexpr MessageKind kKinds[] = {
    {PHASE_UNSPECIFIED, Content::kSamples, Purpose::kEvaluation, "unknown phase"},
    {PHASE_TRAIN, Content::kSamples, Purpose::kTraining, "training"},
    {PHASE_EVALUATE_COMPRESSED, Content::kSamples, Purpose::kEvaluation, "compressed evaluation"},
    {PHASE_EVALUATE_UNCOMPRESSED, Content::kSamples, Purpose::kEvaluation,
     "uncompressed evaluation"},
    {PHASE_RECALIBRATE, Content::kSamples, Purpose::kEvaluation, "recalibration"},
    {PHASE_EVALUATE_RECALIBRATED, Content::kSamples, Purpose::kEvaluation,
     "recalibrated evaluation"},
    {PHASE_GRADIENT_NORM, Content::kSumOfSquares, Purpose::kTraining, "sum of squares of gradients",
     "before", "of all stages at"},
    {PHASE_GENERATE, Content::kSamples, Purpose::kText, "text"},
    {PHASE_BASIS, Content::kBasis, Purpose::kTraining, "gradient of the basis", "before", "behind"},
    {PHASE_CONTRIBUTION, Content::kSamples, Purpose::kTraining, "contribution"},
    {PHASE_AVERAGE, Content::kSamples, Purpose::kTraining, "average"},
    {PHASE_SECOND_CONTRIBUTION, Content::kSamples, Purpose::kTraining, "second contribution"},
    {PHASE_SECOND_AVERAGE, Content::kSamples, Purpose::kTraining, "second average"},
    {PHASE_PART, Content::kSamples, Purpose::kTraining, "numbers of a part"},
    {PHASE_TAKEN, Content::kNothing, Purpose::kTraining, "word that the activation was taken"},
    {PHASE_CALIBRATE, Content::kSamples, Purpose::kEvaluation, "calibration"},
    {PHASE_READY, Content::kSamples, Purpose::kTraining, "word that all averages have come"},
};
static_assert(std::size(kKinds) == Phase_ARRAYSIZE, "each phase has a row");

}  // namespace

const MessageKind& KindOf(Phase phase) {
  return kKinds[Phase_IsValid(phase) ? phase : PHASE_UNSPECIFIED];
}

bool HasTensor(Phase phase, Direction direction) {
  if (HasSumOfSquares(phase) || IsTaken(phase)) return false;
  return direction == DIRECTION_ACTIVATION || IsPartOfTraining(phase);
}

}  // namespace thinwire
