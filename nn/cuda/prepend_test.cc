// Values are moved, and added sample after sample, so every bit is the CPU's.

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

class PrependTest : public testing::TestWithParam<std::tuple<DType, int64_t>> {};

TEST_P(PrependTest, BothPassesAreTheCpus) {
  const auto [type, features] = GetParam();
  const Shape x({5, 7, features}), y({5, 8, features});
  ExpectTwins(kSameBits, [&, type = type, features = features](Side* side) -> Outputs {
    const TensorView result = side->Unwritten(type, y), dx = side->Unwritten(type, x);
    const float* const row = side->Of(RandomFloats(features, 1));
    EXPECT_TRUE(
        (*side)->Prepend(row, side->Of(type, x, RandomFloats(x.elements(), 2)), result).ok());
    float* const drow = side->Of(RandomFloats(features, 3));
    const TensorView dy = side->Of(type, y, RandomFloats(y.elements(), 4));
    EXPECT_TRUE((*side)->PrependBackward(dy, dx, drow).ok());
    const TensorView alone = side->Unwritten(type, x);
    EXPECT_TRUE((*side)->PrependBackward(dy, alone, /*drow=*/nullptr).ok());
    return {{"y", side->Read(result)},
            {"dx", side->Read(dx)},
            {"drow", side->Read(drow, features)},
            {"dx alone", side->Read(alone)}};
  });
}

INSTANTIATE_TEST_SUITE_P(Features, PrependTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(1, 16, 37, 300)));

}  // namespace
}  // namespace thinwire
