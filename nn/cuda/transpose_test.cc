// Bits are moved, so they are the CPU's.

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

class TransposeTest : public testing::TestWithParam<std::tuple<DType, Shape>> {};

TEST_P(TransposeTest, IsTheCpusThereAndBack) {
  const auto [type, shape] = GetParam();
  const Shape flat({shape[0], shape[1] * shape[2] * shape[3]});
  ExpectTwins(kSameBits, [type = type, shape = shape, flat](Side* side) -> Outputs {
    const TensorView x = side->Of(type, shape, RandomFloats(shape.elements(), 1)),
                     y = side->Unwritten(type, flat), back = side->Unwritten(type, shape);
    EXPECT_TRUE((*side)->ToChannelsFirst(x, y).ok());
    EXPECT_TRUE((*side)->ToChannelsLast(y, back).ok());
    EXPECT_EQ(side->Read(back), side->Read(x));
    return {{"y", side->Read(y)}};
  });
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TransposeTest,
    testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                     testing::Values(Shape({1, 1, 1, 1}), Shape({3, 1, 1, 64}), Shape({2, 4, 5, 1}),
                                     Shape({2, 5, 7, 3}), Shape({3, 8, 8, 16}),
                                     Shape({2, 7, 5, 100}), Shape({1, 40, 40, 33}),
                                     Shape({0, 4, 4, 8}))));

}  // namespace
}  // namespace thinwire
