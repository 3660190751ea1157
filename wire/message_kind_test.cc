#include "wire/message_kind.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "wire/message.h"

namespace thinwire {
namespace {

// Tries all that a frame may have.
std::set<Phase> PhasesThat(const std::function<bool(Phase)>& predicate) {
  std::set<Phase> phases;
  for (int number = PHASE_TRAIN; number <= Phase_MAX; ++number) {
    if (predicate(static_cast<Phase>(number))) phases.insert(static_cast<Phase>(number));
  }
  return phases;
}

TEST(MessageKindTest, EachPhaseHasItsRow) {
  for (int number = 0; number < Phase_ARRAYSIZE; ++number) {
    const auto phase = static_cast<Phase>(number);
    ASSERT_TRUE(Phase_IsValid(phase)) << number;
    EXPECT_EQ(KindOf(phase).phase, phase);
  }
  for (const int number : {-1, static_cast<int>(Phase_ARRAYSIZE)}) {
    EXPECT_EQ(KindOf(static_cast<Phase>(number)).phase, PHASE_UNSPECIFIED);
  }
}

TEST(MessageKindTest, WhatIsSentOnceInAStepBelongsToTrainingButIsNoPass) {
  EXPECT_EQ(PhasesThat(IsPartOfTraining),
            (std::set<Phase>{PHASE_TRAIN, PHASE_GRADIENT_NORM, PHASE_BASIS, PHASE_CONTRIBUTION,
                             PHASE_AVERAGE, PHASE_SECOND_CONTRIBUTION, PHASE_SECOND_AVERAGE,
                             PHASE_PART, PHASE_TAKEN, PHASE_READY}));
  EXPECT_EQ(
      PhasesThat(IsTrainingPass),
      (std::set<Phase>{PHASE_TRAIN, PHASE_CONTRIBUTION, PHASE_AVERAGE, PHASE_SECOND_CONTRIBUTION,
                       PHASE_SECOND_AVERAGE, PHASE_PART, PHASE_READY}));
  EXPECT_EQ(PhasesThat(IsOfReplicas),
            (std::set<Phase>{PHASE_CONTRIBUTION, PHASE_AVERAGE, PHASE_SECOND_CONTRIBUTION,
                             PHASE_SECOND_AVERAGE}));
  EXPECT_EQ(PhasesThat(IsOfSum), (std::set<Phase>{PHASE_AVERAGE, PHASE_SECOND_AVERAGE}));
  EXPECT_EQ(PhasesThat([](Phase phase) { return !HasSamples(phase); }),
            (std::set<Phase>{PHASE_GRADIENT_NORM, PHASE_BASIS, PHASE_TAKEN}));
  EXPECT_EQ(PhasesThat(IsTaken), std::set<Phase>{PHASE_TAKEN});
  EXPECT_EQ(PhasesThat(HasSumOfSquares), std::set<Phase>{PHASE_GRADIENT_NORM});
}

TEST(MessageKindTest, AcknowledgementsAndSumsHaveNoTensor) {
  EXPECT_EQ(PhasesThat([](Phase phase) { return !HasTensor(phase, DIRECTION_ACTIVATION); }),
            (std::set<Phase>{PHASE_GRADIENT_NORM, PHASE_TAKEN}));
  EXPECT_EQ(
      PhasesThat([](Phase phase) { return HasTensor(phase, DIRECTION_GRADIENT); }),
      (std::set<Phase>{PHASE_TRAIN, PHASE_BASIS, PHASE_CONTRIBUTION, PHASE_AVERAGE,
                       PHASE_SECOND_CONTRIBUTION, PHASE_SECOND_AVERAGE, PHASE_PART, PHASE_READY}));
}

TEST(MessageKindTest, EvaluationIsAcknowledgedAndATextIsNot) {
  EXPECT_EQ(PhasesThat(IsAcknowledged),
            (std::set<Phase>{PHASE_EVALUATE_COMPRESSED, PHASE_EVALUATE_UNCOMPRESSED,
                             PHASE_RECALIBRATE, PHASE_EVALUATE_RECALIBRATED, PHASE_CALIBRATE}));
}

TEST(MessageKindTest, SomePassesReadOtherDataOrFewerPositions) {
  EXPECT_EQ(PhasesThat(ReadsTrainingData),
            (std::set<Phase>{PHASE_TRAIN, PHASE_RECALIBRATE, PHASE_CALIBRATE}));
  EXPECT_EQ(PhasesThat(Recalibrates), std::set<Phase>{PHASE_RECALIBRATE});
  EXPECT_EQ(PhasesThat(MayHaveFewerPositions), std::set<Phase>{PHASE_GENERATE});
}

std::string Spelled(Phase phase, Direction direction) {
  return MessageKey{phase, direction, /*cut=*/1, /*epoch=*/2, /*step=*/17, /*microbatch=*/3}
      .ToString();
}

TEST(MessageKindTest, EachIsCalledByItsOwnWords) {
  EXPECT_EQ(Spelled(PHASE_TRAIN, DIRECTION_ACTIVATION),
            "training activation of cut 1, epoch 2, step 17, microbatch 3");
  EXPECT_EQ(Spelled(PHASE_GENERATE, DIRECTION_GRADIENT),
            "text gradient of cut 1, epoch 2, step 17, microbatch 3");
  EXPECT_EQ(Spelled(PHASE_GRADIENT_NORM, DIRECTION_ACTIVATION),
            "sum of squares of gradients before cut 1, epoch 2, step 17");
  EXPECT_EQ(Spelled(PHASE_GRADIENT_NORM, DIRECTION_GRADIENT),
            "sum of squares of gradients of all stages at cut 1, epoch 2, step 17");
  EXPECT_EQ(Spelled(PHASE_BASIS, DIRECTION_GRADIENT),
            "gradient of the basis behind cut 1, epoch 2, step 17");
  EXPECT_EQ(Spelled(PHASE_CONTRIBUTION, DIRECTION_GRADIENT),
            "contribution of replica 3, piece 1, epoch 2, step 17");
  EXPECT_EQ(Spelled(PHASE_SECOND_CONTRIBUTION, DIRECTION_GRADIENT),
            "second contribution of replica 3, piece 1, epoch 2, step 17");
  EXPECT_EQ(Spelled(PHASE_TAKEN, DIRECTION_GRADIENT),
            "word that the activation was taken at cut 1, epoch 2, step 17, microbatch 3");
  EXPECT_EQ(Spelled(PHASE_READY, DIRECTION_GRADIENT),
            "word that all averages have come to replica 3, epoch 2, step 17");
  EXPECT_EQ(Spelled(static_cast<Phase>(Phase_ARRAYSIZE), DIRECTION_UNSPECIFIED),
            "unknown phase unknown direction of cut 1, epoch 2, step 17, microbatch 3");
  std::set<std::string> words;
  for (int number = 0; number < Phase_ARRAYSIZE; ++number) {
    words.insert(Spelled(static_cast<Phase>(number), DIRECTION_ACTIVATION));
  }
  EXPECT_EQ(words.size(), static_cast<size_t>(Phase_ARRAYSIZE));
}

}  // namespace
}  // namespace thinwire
