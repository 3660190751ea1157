#include "compress/feedback/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/codecs/round_trip_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

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
  codec.rank = 1;
  for (const FeedbackKind kind : kKinds) {
    EXPECT_TRUE(CheckFeedbackOf(FeedbackOf(kind), codec).ok());
  }
  codec.unbiased = true;
  EXPECT_TRUE(CheckFeedbackOf({}, codec).ok());
  for (const FeedbackKind kind : kKinds) {
    const absl::Status status = CheckFeedbackOf(FeedbackOf(kind), codec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const char* contraction = kind == FeedbackKind::kSplit ? "is -18" : "is -8";
    EXPECT_THAT(status.message(), HasSubstr(contraction));
  }
}

TEST(CheckFeedbackOfTest, AnUnbiasedRandomKOfMoreThanHalfIsAContraction) {
  CodecSpec codec;
  codec.kind = CodecKind::kRandomK;
  codec.unbiased = true;
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21}) {
    for (const double ratio : {0.51, 0.9, 1.0}) {
      codec.ratio = ratio;
      EXPECT_TRUE(CheckFeedbackOf(FeedbackOf(kind), codec).ok()) << ratio;
    }
    codec.ratio = 0.5;
    EXPECT_THAT(CheckFeedbackOf(FeedbackOf(kind), codec).message(),
                HasSubstr("its contraction is 0, want more than 0"));
  }
  codec.ratio = 1;  // of which ef_mixed_b gives either half 0.5
  EXPECT_FALSE(CheckFeedbackOf(FeedbackOf(FeedbackKind::kSplit), codec).ok());
  codec.ratio = 0;
  codec.k = 100;
  EXPECT_THAT(CheckFeedbackOf(FeedbackOf(FeedbackKind::kEf), codec).message(),
              HasSubstr("want a ratio or unbiased false"));
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
  CodecSpec k_of_7 = TopK(0), paper1 = TopK(0.07);
  k_of_7.k = 7;
  paper1.count = Count::kPaper1;
  for (const CodecSpec& codec : {TopK(0.07), k_of_7, paper1}) {
    const auto halves = HalvesOf(codec, {2, 50});
    ASSERT_TRUE(halves.ok()) << halves.status();
    EXPECT_EQ(halves->x.k, 4u) << codec.ToString();
    EXPECT_EQ(halves->e.k, 3u) << codec.ToString();
    EXPECT_TRUE(CheckSpec(halves->x).ok()) << CheckSpec(halves->x);
  }
  EXPECT_EQ(HalvesOf(k_of_7, {1, 4})->x.k, 2u);  // there are no more than four
  EXPECT_TRUE(HalvesOf(TopK(0.1), {0, 4}).ok());
}

TEST(HalvesOfTest, OneEntryIsRefused) {
  const auto halves = HalvesOf(TopK(0.1), {2, 5});
  EXPECT_EQ(halves.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(halves.status().message(),
              HasSubstr("keeps 1 of the 10 elements of a scope of [2, 5], want at least 2"));
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

TEST(CompensatedMaxPayloadBytesTest, IsWithoutExactMessages) {
  const CodecSpec topk = TopK(0.05);  // five entries: 3 and 2
  CodecSpec three = TopK(0), two = TopK(0);
  three.k = 3;
  two.k = 2;
  const Shape shape = {2, 50};
  const auto plain = [&](const CodecSpec& codec) {
    return CodecOf(codec)->MaxPayloadBytes(shape, DType::kF32);
  };
  const auto most = [&](FeedbackKind kind, const CodecSpec& codec) {
    return *CompensatedMaxPayloadBytes(FeedbackOf(kind), codec, shape, DType::kBF16);
  };
  EXPECT_EQ(most(FeedbackKind::kEf, topk), plain(topk));
  EXPECT_EQ(most(FeedbackKind::kEf21, topk), plain(topk));
  EXPECT_EQ(most(FeedbackKind::kSplit, topk), 8 + plain(three) + plain(two));
  EXPECT_EQ(most(FeedbackKind::kNone, CodecSpec()), 200u);
  EXPECT_LE(most(FeedbackKind::kSplit, topk),
            FeedbackMaxPayloadBytes(FeedbackOf(FeedbackKind::kSplit), *CodecOf(topk), shape,
                                    DType::kBF16));
}

// Tests the bound without kernels, as a plan asks for it.
TEST(CompensatedMaxPayloadBytesTest, WantsNoKernels) {
  CodecSpec codec;
  codec.ratio = 0.1;
  codec.rank = 1;
  for (const CodecKind kind : {CodecKind::kNone, CodecKind::kFp16, CodecKind::kUniform,
                               CodecKind::kTopK, CodecKind::kLowRank, CodecKind::kEcsq}) {
    codec.kind = kind;
    for (const Lossless lossless : {Lossless::kNone, Lossless::kZstd, Lossless::kEntropy}) {
      codec.lossless = lossless;
      const auto most = CompensatedMaxPayloadBytes({}, codec, {4, 6, 6, 8}, DType::kF32);
      EXPECT_TRUE(most.ok()) << codec.ToString() << ": " << most.status();
    }
  }
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
