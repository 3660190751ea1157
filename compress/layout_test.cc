#include "compress/layout.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

CodecSpec Ratio(double ratio, Count count) {
  CodecSpec spec;
  spec.kind = CodecKind::kTopK;
  spec.ratio = ratio;
  spec.count = count;
  return spec;
}

TEST(ScopesTest, CutATensorAsTheirNamesSay) {
  const Shape x = {4, 3, 5};
  EXPECT_EQ(ScopesOf(x, Scope::kTensor, 0).elements, 60);
  EXPECT_EQ(ScopesOf(x, Scope::kSample, 0).count, 4);
  EXPECT_EQ(ScopesOf(x, Scope::kToken, 0).count, 12);
  EXPECT_EQ(ScopesOf(x, Scope::kChannel, 0).count, 5);
  EXPECT_EQ(ScopesOf(x, Scope::kChannel, 0).elements, 12);
  EXPECT_TRUE(ScopesOf(x, Scope::kChannel, 0).strided);
}

TEST(ScopesTest, TheLastGroupMayBeShorter) {
  EXPECT_EQ(ScopesOf(Shape({10}), Scope::kGroup, 4).count, 3);
  EXPECT_EQ(ScopesOf(Shape({10}), Scope::kGroup, 100).count, 1);
}

TEST(ScopesTest, AnEmptyTensorHasNone) {
  for (Scope scope : {Scope::kTensor, Scope::kSample, Scope::kChannel, Scope::kToken}) {
    EXPECT_EQ(ScopesOf(Shape({0, 16}), scope, 0).count, 0);
  }
}

TEST(NumKeptTest, RoundsUp) {
  EXPECT_EQ(NumKept(Ratio(0.1, Count::kCeil), 101), 11);
  EXPECT_EQ(NumKept(Ratio(1, Count::kCeil), 101), 101);
  EXPECT_EQ(NumKept(Ratio(1e-9, Count::kCeil), 101), 1);
}

TEST(NumKeptTest, DoesNotRoundUpAWholeNumber) {
  EXPECT_EQ(NumKept(Ratio(0.07, Count::kCeil), 100), 7);
}

// Tests the entries kept per sample against the released code of arXiv 2401.07788 at its three
// cuts.
TEST(NumKeptTest, FollowsPaper1) {
  const double ratios[] = {.5, .3, .2, .1, .05};
  const int64_t kept[][5] = {{32768, 19661, 13108, 6554, 3277},
                             {16384, 9831, 6554, 3277, 1639},
                             {8192, 4916, 3277, 1639, 820}};
  const int64_t sizes[] = {65536, 32768, 16384};
  for (int cut = 0; cut < 3; ++cut) {
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(NumKept(Ratio(ratios[i], Count::kPaper1), sizes[cut]), kept[cut][i]);
    }
  }
  EXPECT_EQ(NumKept(Ratio(.1, Count::kPaper1), 786432), 78644);
}

TEST(NumKeptTest, ACountIsCappedToTheScope) {
  CodecSpec spec;
  spec.k = 10;
  EXPECT_EQ(NumKept(spec, 100), 10);
  EXPECT_EQ(NumKept(spec, 7), 7);
  EXPECT_EQ(NumKept(spec, 0), 0);
}

TEST(PackedIndexBitsTest, CoversEveryIndex) {
  EXPECT_EQ(PackedIndexBits(1), 0u);
  EXPECT_EQ(PackedIndexBits(2), 1u);
  EXPECT_EQ(PackedIndexBits(256), 8u);
  EXPECT_EQ(PackedIndexBits(257), 9u);
  EXPECT_EQ(PackedIndexBits(kSparseMaxElements), 32u);
}

// Tests that both ends of the range decode exactly: the reciprocal has to give one at the last
// code.
TEST(GridTest, TheReciprocalOfEveryDivisorReachesOne) {
  for (uint32_t bits = 1; bits <= 8; ++bits) {
    const float divisor = static_cast<float>((1 << bits) - 1);
    EXPECT_EQ(divisor * (1.0f / divisor), 1.0f) << bits;
  }
}

TEST(GridTest, SymmetricGridsHaveAsManyLevelsOnEitherSide) {
  CodecSpec spec;
  spec.bits = 3;
  spec.range = Range::kMaxAbs;
  EXPECT_EQ(GridOf(spec).zero_code, 3);
  EXPECT_EQ(GridOf(spec).max_code, 6);
}

}  // namespace
}  // namespace thinwire
