#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

struct PoolCase {
  Shape x;
  PoolSpec spec;
};

Shape OutOf(const PoolCase& c) {
  const auto out = [&](int64_t in) {
    return (in + 2 * c.spec.padding - c.spec.kernel) / c.spec.stride + 1;
  };
  return Shape({c.x[0], out(c.x[1]), out(c.x[2]), c.x[3]});
}

class MaxPoolTest : public testing::TestWithParam<std::tuple<DType, PoolCase>> {};

// Maxima are selected and gradients added in the CPU's order: every bit is the CPU's.
TEST_P(MaxPoolTest, ForwardAndBackwardAreTheCpus) {
  const auto& [type, pool] = GetParam();
  const Shape out = OutOf(pool);
  Floats x = RandomFloats(pool.x.elements(), 1);
  for (float& v : x) v = std::round(2 * v);  // with equal maxima
  if (x.size() > 3) x[3] = std::nanf("");
  ExpectTwins(kSameBits, [&, type = type, pool = pool](Side* side) -> Outputs {
    const TensorView from = side->Of(type, pool.x, x), y = side->Unwritten(type, out),
                     dy = side->Of(type, out, RandomFloats(out.elements(), 2)),
                     dx = side->Unwritten(type, pool.x);
    EXPECT_TRUE((*side)->MaxPool(pool.spec, from, y).ok());
    EXPECT_TRUE((*side)->MaxPoolBackward(pool.spec, from, dy, dx).ok());
    return {{"y", side->Read(y)}, {"dx", side->Read(dx)}};
  });
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, MaxPoolTest,
    testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                     testing::Values(PoolCase{Shape({1, 1, 1, 1}), {1, 1, 0}},
                                     PoolCase{Shape({2, 4, 6, 3}), {2, 2, 0}},
                                     PoolCase{Shape({2, 9, 7, 16}), {3, 2, 1}},  // overlapping
                                     PoolCase{Shape({1, 8, 8, 64}), {3, 1, 1}},
                                     PoolCase{Shape({1, 11, 11, 100}), {2, 3, 0}},  // with gaps
                                     PoolCase{Shape({1, 5, 300, 8}), {5, 2, 2}})));

class GlobalAvgPoolTest : public testing::TestWithParam<std::tuple<DType, Shape>> {};

// Forward adds in another order than the CPU. Both fp32 sums of up to 900 numbers are within 900 *
// 2^-24 of their sum of magnitudes, in practice far closer. Backward is one division.
TEST_P(GlobalAvgPoolTest, ForwardAndBackwardAreTheCpus) {
  const auto [type, shape] = GetParam();
  const Shape flat({shape[0], shape[3]});
  ExpectTwins(Rounded(type, 1e-6, 1e-6), [type = type, shape = shape, flat](Side* side) -> Outputs {
    const TensorView x = side->Of(type, shape, RandomFloats(shape.elements(), 1)),
                     y = side->Unwritten(type, flat);
    EXPECT_TRUE((*side)->GlobalAvgPool(x, y).ok());
    return {{"y", side->Read(y)}};
  });
  ExpectTwins(kSameBits, [type = type, shape = shape, flat](Side* side) -> Outputs {
    const TensorView dy = side->Of(type, flat, RandomFloats(flat.elements(), 2)),
                     dx = side->Unwritten(type, shape);
    EXPECT_TRUE((*side)->GlobalAvgPoolBackward(dy, dx).ok());
    return {{"dx", side->Read(dx)}};
  });
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, GlobalAvgPoolTest,
    testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                     testing::Values(Shape({1, 1, 1, 1}), Shape({2, 1, 1, 64}), Shape({3, 5, 7, 3}),
                                     Shape({4, 4, 4, 512}), Shape({2, 30, 30, 16}),
                                     Shape({2, 3, 3, 100}))));

}  // namespace
}  // namespace thinwire
