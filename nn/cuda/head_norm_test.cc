// Sums along a head are fp32 on both sides, in different orders.

#include <gtest/gtest.h>

#include "nn/cuda/testing.h"

namespace thinwire {
namespace {

struct HeadNormCase {
  int64_t rows, heads, kv_heads, head_size;

  Shape shape() const { return Shape({rows, heads + 2 * kv_heads, head_size}); }
  int64_t statistics() const { return rows * (heads + 2 * kv_heads); }
};

class HeadNormTest : public testing::TestWithParam<std::tuple<DType, HeadNormCase>> {
 protected:
  DType type() const { return std::get<0>(GetParam()); }
  HeadNormCase sizes() const { return std::get<1>(GetParam()); }
  template <typename Arguments>
  void SetSizes(Arguments* a) const {
    a->heads = sizes().heads;
    a->kv_heads = sizes().kv_heads;
    a->head_size = sizes().head_size;
  }
  TensorView X(Side* side) const {
    return side->Of(type(), sizes().shape(), RandomFloats(sizes().shape().elements(), 1, 0.5f, 2));
  }
};

TEST_P(HeadNormTest, ForwardIsTheCpus) {
  ExpectTwins(Rounded(type(), 1e-5, 1e-5), [&](Side* side) -> Outputs {
    HeadNormForward a;
    SetSizes(&a);
    a.x = X(side);
    a.y = side->Unwritten(type(), sizes().shape());
    a.scale = side->Of(RandomFloats(2 * sizes().head_size, 2, 1, 0.1f));
    a.rstd = side->Of(Floats(sizes().statistics()));  // those of values are not written
    EXPECT_TRUE((*side)->NormalizeHeads(a).ok());
    return {{"y", side->Read(a.y)}, {"rstd", side->Read(a.rstd, sizes().statistics())}};
  });
}

// dscale is a sum over all heads, added to what was there.
TEST_P(HeadNormTest, BackwardIsTheCpus) {
  const double many = std::sqrt(static_cast<double>(sizes().statistics() + sizes().head_size));
  ExpectTwins(Rounded(type(), 1e-5, 2e-6 * many + 1e-5), [&](Side* side) -> Outputs {
    HeadNormBackward a;
    SetSizes(&a);
    a.x = X(side);
    a.dy = side->Of(type(), sizes().shape(), RandomFloats(sizes().shape().elements(), 2));
    a.dx = side->Unwritten(type(), sizes().shape());
    a.scale = side->Of(RandomFloats(2 * sizes().head_size, 3, 1, 0.1f));
    a.rstd = side->Of(RandomFloats(sizes().statistics(), 5, 0.5f, 0.1f));
    a.dscale = side->Of(RandomFloats(2 * sizes().head_size, 6, 100));
    EXPECT_TRUE((*side)->NormalizeHeadsBackward(a).ok());
    const Floats dx = side->Read(a.dx), dscale = side->Read(a.dscale, 2 * sizes().head_size);
    a.dscale = nullptr;
    a.dx = side->Unwritten(type(), sizes().shape());
    EXPECT_TRUE((*side)->NormalizeHeadsBackward(a).ok());
    return {{"dx", dx}, {"dscale", dscale}, {"dx alone", side->Read(a.dx)}};
  });
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, HeadNormTest,
    testing::Combine(testing::Values(DType::kF32, DType::kBF16),
                     testing::Values(HeadNormCase{1, 1, 1, 2}, HeadNormCase{7, 4, 2, 24},
                                     HeadNormCase{5, 3, 1, 5}, HeadNormCase{70, 2, 2, 64},
                                     HeadNormCase{9, 16, 8, 128}, HeadNormCase{3, 1, 1, 1100})));

TEST(HeadNormTest, ValuesStayAsTheyAre) {
  Side side = DeviceSide();
  HeadNormForward a;
  a.heads = a.kv_heads = 1;
  a.head_size = 2;
  const Shape shape({1, 3, 2});
  a.x = side.Of(DType::kF32, shape, {3, 4, 6, 8, -7, 9});
  a.y = side.Unwritten(DType::kF32, shape);
  a.scale = side.Of({1, 1, 2, 10});
  a.rstd = side.Unwritten(3);
  a.epsilon = 0;
  ASSERT_TRUE(side->NormalizeHeads(a).ok());
  const Floats y = side.Read(a.y);
  const float query = std::sqrt(12.5f), key = std::sqrt(50.0f);
  const Floats want = {3 / query, 4 / query, 12 / key, 80 / key, -7, 9};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(y[i], want[i], 1e-6f) << i;
}

}  // namespace
}  // namespace thinwire
