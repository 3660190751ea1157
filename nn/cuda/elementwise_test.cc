// Every bit is the CPU's: each element is one operation, rounded alike.

#include <gtest/gtest.h>

#include <limits>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The sizes n are one element, fewer and more than a vector has, and more than a block has.
class ElementwiseTest : public testing::TestWithParam<std::tuple<DType, int64_t>> {
 protected:
  DType type() const { return std::get<0>(GetParam()); }
  int64_t n() const { return std::get<1>(GetParam()); }
  Shape shape() const { return Shape({n()}); }
  // Random numbers, with what is special sprinkled in.
  Floats Numbers(uint64_t seed) const {
    Floats values = RandomFloats(n(), seed);
    const float special[] = {0.0f, -0.0f, kInfinity, -kInfinity, 1e-40f, std::nanf("")};
    for (size_t i = seed; i < values.size(); i += 5) values[i] = special[i % 6];
    return values;
  }
};

TEST_P(ElementwiseTest, ReluIsTheCpus) {
  ExpectTwins(kSameBits, [&](Side* side) -> Outputs {
    const TensorView x = side->Of(type(), shape(), Numbers(1)),
                     y = side->Unwritten(type(), shape());
    EXPECT_TRUE((*side)->Relu(x, y).ok());
    return {{"y", side->Read(y)}};
  });
}

TEST_P(ElementwiseTest, ReluMayOverwriteItsInput) {
  ExpectTwins(kSameBits, [&](Side* side) -> Outputs {
    const TensorView x = side->Of(type(), shape(), Numbers(1));
    EXPECT_TRUE((*side)->Relu(x, x).ok());
    return {{"x", side->Read(x)}};
  });
}

TEST_P(ElementwiseTest, ReluBackwardIsTheCpus) {
  ExpectTwins(kSameBits, [&](Side* side) -> Outputs {
    const TensorView y = side->Of(type(), shape(), Numbers(1)),
                     dy = side->Of(type(), shape(), Numbers(2)),
                     dx = side->Unwritten(type(), shape());
    EXPECT_TRUE((*side)->ReluBackward(y, dy, dx).ok());
    return {{"dx", side->Read(dx)}};
  });
}

TEST_P(ElementwiseTest, AddIsTheCpusAndMayOverwriteAnInput) {
  ExpectTwins(kSameBits, [&](Side* side) -> Outputs {
    const TensorView a = side->Of(type(), shape(), Numbers(1)),
                     b = side->Of(type(), shape(), Numbers(2)),
                     sum = side->Unwritten(type(), shape());
    EXPECT_TRUE((*side)->Add(a, b, sum).ok());
    EXPECT_TRUE((*side)->Add(sum, b, b).ok());
    return {{"sum", side->Read(sum)}, {"b", side->Read(b)}};
  });
}

TEST_P(ElementwiseTest, ConvertIsTheCpus) {
  ExpectTwins(kSameBits, [&](Side* side) -> Outputs {
    const TensorView from = side->Of(type(), shape(), Numbers(1)),
                     wide = side->Unwritten(DType::kF32, shape()),
                     narrow = side->Unwritten(DType::kBF16, shape());
    EXPECT_TRUE((*side)->Convert(from, wide).ok());
    EXPECT_TRUE((*side)->Convert(from, narrow).ok());
    return {{"wide", side->Read(wide)}, {"narrow", side->Read(narrow)}};
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, ElementwiseTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(0, 1, 3, 8, 100, 4099, 8192, 50001)));

TEST(ZeroTest, ClearsAllAndNoMore) {
  Side side = DeviceSide();
  float* const values = side.Of(Floats(10, 3.0f));
  ASSERT_TRUE(side->Zero(values + 1, 8).ok());
  EXPECT_EQ(side.Read(values, 10), (Floats{3, 0, 0, 0, 0, 0, 0, 0, 0, 3}));
  ASSERT_TRUE(side->Zero(values, 0).ok());
  EXPECT_EQ(side.Read(values, 1), Floats{3});
}

}  // namespace
}  // namespace thinwire
