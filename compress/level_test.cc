#include "compress/level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CodecSpec TopK(double ratio) {
  CodecSpec codec;
  codec.kind = CodecKind::kTopK;
  codec.scope = Scope::kSample;
  codec.ratio = ratio;
  return codec;
}

CodecSpec Uniform(uint32_t bits) {
  CodecSpec codec;
  codec.kind = CodecKind::kUniform;
  codec.bits = bits;
  return codec;
}

LevelSpec ByEpoch(std::map<uint32_t, double> table) {
  LevelSpec spec;
  spec.kind = LevelKind::kByEpoch;
  spec.by_epoch = std::move(table);
  return spec;
}

LevelSpec ByError(double target, double min, double max) {
  LevelSpec spec;
  spec.kind = LevelKind::kByError;
  spec.target_error = target;
  spec.min = min;
  spec.max = max;
  return spec;
}

std::string Refusal(const LevelSpec& spec, const CodecSpec& codec) {
  return std::string(CheckLevel(spec, codec).message());
}

TEST(LevelByEpochTest, TakesEffectFromItsEpochOnAndLeavesTheOwnLevelBefore) {
  const LevelSpec spec = ByEpoch({{2, 0.5}, {4, 0.1}});
  EXPECT_EQ(InEpoch(TopK(0.9), spec, 1), TopK(0.9));
  EXPECT_EQ(InEpoch(TopK(0.9), spec, 2), TopK(0.5));
  EXPECT_EQ(InEpoch(TopK(0.9), spec, 3), TopK(0.5));
  EXPECT_EQ(InEpoch(TopK(0.9), spec, 4), TopK(0.1));
  EXPECT_EQ(InEpoch(TopK(0.9), spec, 99), TopK(0.1));
}

TEST(LevelByErrorTest, TheRateOfEcsqGrowsByAQuarter) {
  CodecSpec codec;
  codec.kind = CodecKind::kEcsq;
  codec.lossless = Lossless::kEntropy;
  codec.rate = 2;
  LevelController controller(codec, ByError(0.1, 0.5, 4));
  EXPECT_EQ(controller.Train(1, 1), codec);
  controller.Observe(1, 0.2);
  EXPECT_EQ(controller.Train(1, 2).rate, 2.5);
  EXPECT_EQ(Largest(codec, ByError(0.1, 0.5, 4)).rate, 4);
  EXPECT_EQ(LevelOf(Lowest(codec, ByError(0.1, 0.5, 4))), 0.5);
}

TEST(LowestTest, IsTheLeastLevelThatTrainingUses) {
  EXPECT_EQ(Lowest(TopK(0.9), {}), TopK(0.9));
  EXPECT_EQ(Lowest(TopK(0.9), ByEpoch({{2, 0.1}, {4, 0.5}})), TopK(0.1));
  EXPECT_EQ(Lowest(TopK(0.1), ByEpoch({{2, 0.5}})), TopK(0.1));
  EXPECT_EQ(Lowest(TopK(0.1), ByEpoch({{1, 0.5}})), TopK(0.5));  // its own is never used
  EXPECT_EQ(Lowest(Uniform(8), ByError(0.1, 2, 6)), Uniform(2));
}

TEST(LevelByEpochTest, EvaluationUsesTheLastEntryFromTheStart) {
  LevelController controller(Uniform(8), ByEpoch({{2, 4}, {3, 2}}));
  EXPECT_EQ(controller.Train(1, 1), Uniform(8));
  EXPECT_EQ(controller.Evaluate(), Uniform(2));
  EXPECT_EQ(controller.Train(2, 2), Uniform(4));
}

TEST(LevelByEpochTest, TheReceiverTakesTheEpochsLevelAndNoOther) {
  const LevelSpec spec = ByEpoch({{2, 4}});
  EXPECT_TRUE(CheckMet(Uniform(8), Uniform(8), spec, 1, /*training=*/true).ok());
  EXPECT_TRUE(CheckMet(Uniform(4), Uniform(8), spec, 2, /*training=*/true).ok());
  EXPECT_TRUE(CheckMet(Uniform(4), Uniform(8), spec, 1, /*training=*/false).ok());
  EXPECT_THAT(std::string(CheckMet(Uniform(8), Uniform(8), spec, 2, true).message()),
              AllOf(HasSubstr("bits=8"), HasSubstr("want uniform(bits=4")));
  EXPECT_FALSE(CheckMet(Uniform(8), Uniform(8), spec, 1, /*training=*/false).ok());
}

TEST(LevelByErrorTest, RisesAboveTheTargetFallsWellBelowAndStaysBetween) {
  LevelController controller(TopK(0.1), ByError(0.2, 0.05, 0.15));
  EXPECT_EQ(controller.Train(1, 1).ratio, 0.1);
  controller.Observe(1, 0.21);
  EXPECT_EQ(controller.Train(1, 1).ratio, 0.1);  // the step that was measured keeps its level
  EXPECT_EQ(controller.Train(1, 2).ratio, 0.1 * 1.25);
  controller.Observe(2, 0.3);
  EXPECT_EQ(controller.Train(1, 3).ratio, 0.15);  // no further
  controller.Observe(3, 0.17);
  EXPECT_EQ(controller.Train(1, 4).ratio, 0.15);
  controller.Observe(4, 0.15);
  EXPECT_EQ(controller.Train(1, 5).ratio, 0.15 / 1.25);
  EXPECT_EQ(controller.Train(1, 6).ratio, 0.15 / 1.25);  // nothing new was measured
  EXPECT_EQ(controller.Evaluate().ratio, 0.15 / 1.25);
}

TEST(LevelByErrorTest, ItIsTheMeanOverAStepsMicrobatchesThatDecides) {
  LevelController controller(Uniform(4), ByError(0.2, 2, 8));
  controller.Train(1, 1);
  controller.Observe(1, 0.5);
  controller.Observe(1, 0.05);
  controller.Observe(1, 0.02);
  EXPECT_EQ(controller.Train(1, 2), Uniform(4));  // 0.19
  controller.Observe(2, 0.5);
  controller.Observe(2, 0.05);
  EXPECT_EQ(controller.Train(1, 3), Uniform(5));
}

TEST(LevelByErrorTest, TheReceiverTakesAnyLevelWithinTheBoundsAndNothingElse) {
  const LevelSpec spec = ByError(0.2, 0.05, 0.5);
  EXPECT_TRUE(CheckMet(TopK(0.05), TopK(0.1), spec, 1, true).ok());
  EXPECT_TRUE(CheckMet(TopK(0.5), TopK(0.1), spec, 1, false).ok());
  EXPECT_FALSE(CheckMet(TopK(0.51), TopK(0.1), spec, 1, true).ok());
  EXPECT_FALSE(CheckMet(TopK(0.04), TopK(0.1), spec, 1, true).ok());
  CodecSpec other = TopK(0.1);
  other.scope = Scope::kTensor;
  EXPECT_FALSE(CheckMet(other, TopK(0.1), spec, 1, true).ok());
  EXPECT_FALSE(CheckMet(Uniform(8), TopK(0.1), spec, 1, true).ok());
}

// Ratios that no number of bits is made of.
TEST(LevelByErrorTest, TheReceiverRefusesAnotherKindWhateverItsLevel) {
  for (double ratio : {1e300, -5.0, double{NAN}, 4.0}) {
    EXPECT_THAT(
        std::string(CheckMet(TopK(ratio), Uniform(4), ByError(0.2, 2, 8), 1, true).message()),
        AllOf(HasSubstr("codec topk"), HasSubstr("want uniform(bits=4")));
    EXPECT_FALSE(CheckMet(TopK(ratio), TopK(0.1), ByError(0.2, 0.05, 0.5), 1, true).ok());
  }
}

TEST(LevelByErrorTest, StartsWithinItsBounds) {
  EXPECT_EQ(LevelController(TopK(0.9), ByError(0.2, 0.05, 0.5)).Train(1, 1).ratio, 0.5);
  EXPECT_EQ(Largest(TopK(0.1), ByError(0.2, 0.05, 0.5)).ratio, 0.5);
  EXPECT_EQ(Largest(TopK(0.1), ByEpoch({{1, 0.7}, {2, 0.05}})).ratio, 0.7);
}

TEST(LevelControllerTest, OneThatIsRestoredGoesOnAsTheOther) {
  LevelController whole(TopK(0.1), ByError(0.1, 0.01, 0.5));
  whole.Train(1, 1);
  whole.Observe(1, 0.4);
  whole.Observe(1, 0.2);
  LevelController restored(TopK(0.1), ByError(0.1, 0.01, 0.5));
  ASSERT_TRUE(restored.Restore(whole.state()).ok());
  EXPECT_EQ(restored.Train(1, 2), whole.Train(1, 2));
  EXPECT_GT(LevelOf(restored.Train(1, 2)), 0.1);
  EXPECT_FALSE(restored.Restore({0.9, 1, 0, 0}).ok());
  EXPECT_FALSE(restored.Restore({0.1, 1, -1, 1}).ok());
}

TEST(CheckLevelTest, NamesWhatItRefuses) {
  EXPECT_TRUE(CheckLevel(ByEpoch({{1, 0.5}}), TopK(0.1)).ok());
  EXPECT_THAT(Refusal(ByEpoch({{1, 1.5}}), TopK(0.1)), HasSubstr("level.by_epoch is 1.5"));
  EXPECT_THAT(Refusal(ByEpoch({{1, 2.5}}), Uniform(4)), HasSubstr("whole bits"));
  EXPECT_THAT(Refusal(ByEpoch({{0, 2}}), Uniform(4)), HasSubstr("epoch 0"));
  EXPECT_THAT(Refusal(ByEpoch({}), Uniform(4)), HasSubstr("no entry"));
  EXPECT_THAT(Refusal(ByError(0.1, 0.5, 0.2), TopK(0.1)), HasSubstr("level.min is 0.5"));
  EXPECT_THAT(Refusal(ByError(1.5, 0.1, 0.2), TopK(0.1)), HasSubstr("level.target_error is 1.5"));
  EXPECT_THAT(Refusal(ByEpoch({{1, 0.5}}), CodecSpec()), HasSubstr("codec none"));
  CodecSpec max_abs = Uniform(4);
  max_abs.range = Range::kMaxAbs;
  EXPECT_THAT(Refusal(ByEpoch({{1, 1}}), max_abs), HasSubstr("max_abs"));
}

}  // namespace
}  // namespace thinwire
