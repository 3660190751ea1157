// Values are selected, not computed, so every bit is the CPU's.

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

class MaxoutTest : public testing::TestWithParam<std::tuple<DType, int64_t, int64_t>> {};

TEST_P(MaxoutTest, ForwardAndBackwardAreTheCpus) {
  const auto [type, n, group] = GetParam();
  Floats x = RandomFloats(n * group, 1);
  for (float& v : x) v = std::round(2 * v);  // with equal maxima
  x[x.size() / 2] = std::nanf("");
  ExpectTwins(kSameBits, [&, type = type, n = n, group = group](Side* side) -> Outputs {
    const Shape wide({n * group}), narrow({n});
    const TensorView from = side->Of(type, wide, x), y = side->Unwritten(type, narrow),
                     dy = side->Of(type, narrow, RandomFloats(n, 2)),
                     dx = side->Unwritten(type, wide);
    EXPECT_TRUE((*side)->Maxout(group, from, y).ok());
    EXPECT_TRUE((*side)->MaxoutBackward(group, from, dy, dx).ok());
    return {{"y", side->Read(y)}, {"dx", side->Read(dx)}};
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, MaxoutTest,
                         testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                                          testing::Values(1, 100, 3001), testing::Values(1, 2, 5)));

}  // namespace
}  // namespace thinwire
