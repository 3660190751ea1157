#include "compress/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

CodecSpec TopK(double ratio) {
  CodecSpec spec;
  spec.kind = CodecKind::kTopK;
  spec.ratio = ratio;
  spec.scope = Scope::kSample;
  return spec;
}

CodecSpec Uniform(uint32_t bits) {
  CodecSpec spec;
  spec.kind = CodecKind::kUniform;
  spec.bits = bits;
  return spec;
}

std::string ErrorOf(const CodecSpec& spec) { return std::string(CheckSpec(spec).message()); }

TEST(CodecSpecTest, SpellsEveryParameterThatMatters) {
  EXPECT_EQ(TopK(0.1).ToString(), "topk(ratio=0.1, scope=sample, values=fp32)");
  EXPECT_EQ(Uniform(4).ToString(),
            "uniform(bits=4, range=min_max, scope=tensor, rounding=nearest, zero=free)");
  EXPECT_EQ(CodecSpec{}.ToString(), "none");
}

TEST(CodecSpecTest, DiffersInAnyField) {
  CodecSpec other = TopK(0.1);
  EXPECT_EQ(other, TopK(0.1));
  other.pad = Pad::kExactK;
  EXPECT_NE(other, TopK(0.1));
}

TEST(CheckSpecTest, AcceptsWhatThePapersUse) {
  EXPECT_TRUE(CheckSpec(TopK(1)).ok());
  EXPECT_TRUE(CheckSpec(Uniform(1)).ok());
  EXPECT_TRUE(CheckSpec(CodecSpec{}).ok());
}

TEST(CheckSpecTest, NamesTheRatioItRefuses) {
  EXPECT_THAT(ErrorOf(TopK(1.5)), HasSubstr("topk: ratio is 1.5"));
  EXPECT_THAT(ErrorOf(TopK(-0.5)), HasSubstr("topk: ratio is -0.5"));
  EXPECT_THAT(ErrorOf(TopK(std::nan(""))), HasSubstr("topk: ratio is nan"));
}

TEST(CheckSpecTest, WantsEitherARatioOrACount) {
  CodecSpec both = TopK(0.5);
  both.k = 3;
  EXPECT_THAT(ErrorOf(both), HasSubstr("exactly one"));
  EXPECT_THAT(ErrorOf(TopK(0)), HasSubstr("exactly one"));
}

TEST(CheckSpecTest, SymmetricRangesNeedTwoBits) {
  CodecSpec spec = Uniform(1);
  spec.range = Range::kMaxAbs;
  EXPECT_THAT(ErrorOf(spec), HasSubstr("want 2 to 8 with range max_abs"));
  EXPECT_THAT(ErrorOf(Uniform(9)), HasSubstr("uniform: bits is 9"));
}

TEST(CheckSpecTest, AGroupSizeBelongsToTheGroupScope) {
  CodecSpec spec = Uniform(4);
  spec.scope = Scope::kGroup;
  EXPECT_THAT(ErrorOf(spec), HasSubstr("group is 0 with scope group"));
  spec.group = 64;
  EXPECT_TRUE(CheckSpec(spec).ok());
  spec.scope = Scope::kTensor;
  EXPECT_THAT(ErrorOf(spec), HasSubstr("group is 64 with scope tensor"));
}

template <typename Enum>
void ExpectNamesInvert() {
  for (int i = 0; i <= UINT8_MAX; ++i) {
    const auto value = static_cast<Enum>(i);
    if (std::string(Name(value)) == "unknown") continue;
    Enum back{};
    ASSERT_TRUE(FromName(Name(value), &back).ok());
    EXPECT_EQ(back, value) << Name(value);
  }
}

TEST(CheckSpecTest, OnlyTopKPads) {
  CodecSpec spec;
  spec.pad = Pad::kExactK;
  spec.ratio = 0.1;
  spec.kind = CodecKind::kTopK;
  EXPECT_TRUE(CheckSpec(spec).ok());
  spec.kind = CodecKind::kRandomK;
  EXPECT_FALSE(CheckSpec(spec).ok());
  spec.kind = CodecKind::kThreshold;
  spec.threshold = 1;
  EXPECT_FALSE(CheckSpec(spec).ok());
  spec.pad = Pad::kNone;
  EXPECT_TRUE(CheckSpec(spec).ok());
}

TEST(CheckSpecTest, AThresholdHoldsForTheTensor) {
  CodecSpec spec;
  spec.kind = CodecKind::kThreshold;
  spec.threshold = 1;
  spec.scope = Scope::kSample;
  EXPECT_FALSE(CheckSpec(spec).ok());
}

TEST(IsCausalTest, HoldsWhereNothingIsSharedByTwoRows) {
  CodecSpec spec = Uniform(8);
  for (const Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel}) {
    spec.scope = scope;
    EXPECT_FALSE(IsCausal(spec, 128)) << spec.ToString();
  }
  spec.scope = Scope::kToken;
  EXPECT_TRUE(IsCausal(spec, 128));
  spec.scope = Scope::kGroup;
  spec.group = 64;
  EXPECT_TRUE(IsCausal(spec, 128));
  EXPECT_FALSE(IsCausal(spec, 96));
  spec.rotation = Rotation::kHadamard;
  spec.rotation_block = 256;
  EXPECT_FALSE(IsCausal(spec, 128));
}

TEST(IsCausalTest, FollowsWhatKeptValuesAndBlocksShare) {
  CodecSpec topk = TopK(0.1);
  EXPECT_FALSE(IsCausal(topk, 128));
  topk.scope = Scope::kToken;
  EXPECT_TRUE(IsCausal(topk, 128));
  topk.values = Values::kUniform;
  EXPECT_FALSE(IsCausal(topk, 128));
  CodecSpec threshold = DefaultSpec(CodecKind::kThreshold);
  EXPECT_TRUE(IsCausal(threshold, 128));
  threshold.relative_to = RelativeTo::kMax;
  EXPECT_FALSE(IsCausal(threshold, 128));
  CodecSpec blocks = DefaultSpec(CodecKind::kBlockwise8);
  blocks.block = 32;
  EXPECT_TRUE(IsCausal(blocks, 128));
  EXPECT_FALSE(IsCausal(blocks, 48));
  EXPECT_TRUE(IsCausal(CodecSpec{}, 128));
  EXPECT_FALSE(IsCausal(DefaultSpec(CodecKind::kLowRank), 128));
  EXPECT_FALSE(IsCausal(DefaultSpec(CodecKind::kPlugin), 128));
}

TEST(FromNameTest, InvertsName) {
  ExpectNamesInvert<CodecKind>();
  ExpectNamesInvert<Scope>();
  ExpectNamesInvert<Range>();
  ExpectNamesInvert<Rounding>();
  ExpectNamesInvert<Zero>();
  ExpectNamesInvert<Rotation>();
  ExpectNamesInvert<Count>();
  ExpectNamesInvert<Pad>();
  ExpectNamesInvert<Values>();
  ExpectNamesInvert<Indices>();
  ExpectNamesInvert<Support>();
  ExpectNamesInvert<RelativeTo>();
  ExpectNamesInvert<Fp8Format>();
  ExpectNamesInvert<Lossless>();
}

TEST(FromNameTest, SuggestsTheNearestName) {
  CodecKind kind;
  EXPECT_EQ(FromName("topc", &kind).message(),
            "codec: unknown \"topc\", nearest is \"topk\" (want one of none, fp16, bf16, fp8, "
            "uniform, ecsq, topk, randomk, threshold, blockwise8, low_rank, plugin)");
}

}  // namespace
}  // namespace thinwire
