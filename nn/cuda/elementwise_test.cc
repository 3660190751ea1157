// Every bit is the CPU's where each element is one operation, rounded alike. GELU and SwiGLU use
// another exponential.

#include <gtest/gtest.h>

#include <limits>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Sizes n: one element, fewer and more than a vector has, and more than a block has.
class ElementwiseTest : public testing::TestWithParam<std::tuple<DType, int64_t>> {
 protected:
  DType type() const { return std::get<0>(GetParam()); }
  int64_t n() const { return std::get<1>(GetParam()); }
  Shape shape() const { return Shape({n()}); }
  // Returns random numbers with special values among them.
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

TEST_P(ElementwiseTest, FunctionsOfElementsAreTheCpus) {
  for (const Pointwise function : {Pointwise::kTanhGelu, Pointwise::kExactGelu, Pointwise::kTanh}) {
    ExpectTwins(Rounded(type(), 1e-6, 1e-6), [&](Side* side) -> Outputs {
      const TensorView x = side->Of(type(), shape(), Numbers(1)),
                       dy = side->Of(type(), shape(), RandomFloats(n(), 2)),
                       y = side->Unwritten(type(), shape());
      EXPECT_TRUE((*side)->Apply(function, x, y).ok());
      EXPECT_TRUE((*side)->ApplyBackward(function, x, dy, dy).ok());
      return {{"y", side->Read(y)}, {"dx", side->Read(dy)}};
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ElementwiseTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(0, 1, 3, 8, 100, 4099, 8192, 50001)));

// Rows that consist of whole vectors, and others.
TEST(SwigluTest, IsTheCpus) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    for (const int64_t features : {1, 8, 37, 200}) {
      const Shape wide({3, 7, 2 * features}), narrow({3, 7, features});
      ExpectTwins(Rounded(type, 1e-6, 1e-6), [&](Side* side) -> Outputs {
        const TensorView x = side->Of(type, wide, RandomFloats(wide.elements(), 1, 0, 4)),
                         dy = side->Of(type, narrow, RandomFloats(narrow.elements(), 2)),
                         y = side->Unwritten(type, narrow), dx = side->Unwritten(type, wide);
        EXPECT_TRUE((*side)->Swiglu(x, y).ok());
        EXPECT_TRUE((*side)->SwigluBackward(x, dy, dx).ok());
        return {{"y", side->Read(y)}, {"dx", side->Read(dx)}};
      });
    }
  }
}

TEST(DropTest, IsTheCpus) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    for (const int64_t features : {1, 24, 1003, 20000}) {
      ExpectTwins(kSameBits, [&, shape = Shape({3, features})](Side* side) -> Outputs {
        Dropout a;
        a.rate = 0.3f;
        a.key = 0x123456789ABCDEFu;
        a.first_sample = 5;
        a.first_element = 3;
        a.x = side->Of(type, shape, RandomFloats(shape.elements(), 1));
        a.y = side->Unwritten(type, shape);
        EXPECT_TRUE((*side)->Drop(a).ok());
        const Floats apart = side->Read(a.y);
        a.y = a.x;
        EXPECT_TRUE((*side)->Drop(a).ok());
        return {{"apart", apart}, {"in place", side->Read(a.x)}};
      });
    }
  }
}

TEST(DropTest, RefusesARateInTheCpusWords) {
  Side device = DeviceSide(), cpu = CpuSide();
  Dropout a;
  a.rate = 1;
  EXPECT_EQ(ToStatus(device->Drop(a)), ToStatus(cpu->Drop(a)));
  EXPECT_EQ(ToStatus(device->Drop(a)).code(), absl::StatusCode::kInvalidArgument);
}

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
