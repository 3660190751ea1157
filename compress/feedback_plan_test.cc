#include "compress/feedback_plan.h"

#include <gtest/gtest.h>

#include "compress/round_trip.h"

namespace thinwire {
namespace {

CodecSpec TopK(double ratio) {
  CodecSpec spec;
  spec.kind = CodecKind::kTopK;
  spec.ratio = ratio;
  return spec;
}

FeedbackSpec FeedbackOf(FeedbackKind kind) {
  FeedbackSpec spec;
  spec.kind = kind;
  return spec;
}

const FeedbackKind kKinds[] = {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit};

TEST(CheckFeedbackOfTest, AnUnbiasedRandomKIsRefusedWithItsContraction) {
  CodecSpec codec;
  codec.kind = CodecKind::kRandomK;
  codec.ratio = 0.1;
  for (const FeedbackKind kind : kKinds) {
    EXPECT_TRUE(CheckFeedbackOf(FeedbackOf(kind), codec).ok());
  }
  codec.unbiased = true;
  EXPECT_TRUE(CheckFeedbackOf({}, codec).ok());
  for (const FeedbackKind kind : kKinds) {
    const absl::Status status = CheckFeedbackOf(FeedbackOf(kind), codec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("-8"), std::string::npos) << status;
  }
}

TEST(CheckFeedbackOfTest, WhatIsSentOnASupportOnlyIsRefused) {
  CodecSpec on_support = TopK(0.1);
  on_support.support = Support::kReceivedNonzero;
  CodecSpec shared;
  shared.kind = CodecKind::kTopK;
  shared.indices = Indices::kShared;
  for (const CodecSpec& codec : {on_support, shared}) {
    EXPECT_TRUE(CheckFeedbackOf({}, codec).ok());
    EXPECT_FALSE(CheckFeedbackOf(FeedbackOf(FeedbackKind::kEf), codec).ok());
  }
}

TEST(CheckFeedbackOfTest, OnlyABudgetOfTwoCanBeHalved) {
  const FeedbackSpec split = FeedbackOf(FeedbackKind::kSplit);
  CodecSpec uniform;
  uniform.kind = CodecKind::kUniform;
  EXPECT_FALSE(CheckFeedbackOf(split, uniform).ok());
  EXPECT_TRUE(CheckFeedbackOf(split, TopK(0.1)).ok());
  EXPECT_TRUE(CheckFeedbackOf(split, CodecSpec()).ok());
  CodecSpec one = TopK(0);
  one.k = 1;
  EXPECT_FALSE(CheckFeedbackOf(split, one).ok());
  one.k = 2;
  EXPECT_TRUE(CheckFeedbackOf(split, one).ok());
}

TEST(HalvesOfTest, SumToTheWhole) {
  EXPECT_EQ(HalvesOf(TopK(0.1)).x.ratio, 0.05);
  EXPECT_EQ(HalvesOf(TopK(0.1)).e.ratio, 0.05);
  CodecSpec seven = TopK(0);
  seven.k = 7;
  EXPECT_EQ(HalvesOf(seven).x.k, 4u);
  EXPECT_EQ(HalvesOf(seven).e.k, 3u);
}

TEST(MeasureContractionTest, TellsContractionsFromExpansions) {
  const auto measure = [](const CodecSpec& spec) {
    return *MeasureContraction(*CodecOf(spec), {4, 16, 64}, CpuDevice(), CpuCodecKernels());
  };
  EXPECT_EQ(measure(CodecSpec()), 1);
  EXPECT_GT(measure(TopK(0.1)), 0.1);  // K / n and more: the largest
  CodecSpec uniform;
  uniform.kind = CodecKind::kUniform;
  uniform.bits = 4;
  EXPECT_GT(measure(uniform), 0.9);
  uniform.bits = 1;  // every value becomes the least or the greatest
  EXPECT_LT(measure(uniform), 0);
}

TEST(StateBytesTest, AreOfTheEndsThatKeepState) {
  FeedbackSpec spec;
  const Shape sample = {1, 10, 100};
  EXPECT_EQ(StateBytesOf(spec, sample, 50).sender, 0u);
  spec.kind = FeedbackKind::kEf;
  EXPECT_EQ(StateBytesOf(spec, sample, 50).sender, 200000u);
  EXPECT_EQ(StateBytesOf(spec, sample, 50).receiver, 0u);
  spec.kind = FeedbackKind::kEf21;
  spec.store = StateStorage::kF16;
  EXPECT_EQ(StateBytesOf(spec, sample, 50).receiver, 100100u);
  spec.limit_bytes = 5000;
  EXPECT_EQ(StateBytesOf(spec, sample, 50).sender, 4004u);
}

TEST(FeedbackMaxPayloadBytesTest, HoldsExactMessagesAndBothHalves) {
  const auto codec = CodecOf(TopK(0.5));
  const Shape shape = {2, 100};
  const size_t plain = codec->MaxPayloadBytes(shape, DType::kF32);
  EXPECT_EQ(FeedbackMaxPayloadBytes({}, *CodecOf(TopK(0.01)), shape, DType::kF32), 800u);
  EXPECT_EQ(FeedbackMaxPayloadBytes({}, *CodecOf(TopK(0.01)), shape, DType::kBF16), 400u);
  EXPECT_EQ(FeedbackMaxPayloadBytes(FeedbackOf(FeedbackKind::kSplit), *codec, shape, DType::kBF16),
            8 + 2 * plain);
}

}  // namespace
}  // namespace thinwire
