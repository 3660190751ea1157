#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nn/cpu/ops.h"
#include "nn/cpu/tensors_testing.h"

namespace thinwire::cpu {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Floats ResultOf(Pointwise function, const Floats& x, int threads = 1) {
  const Shape shape({static_cast<int64_t>(x.size())});
  Floats y(x.size());
  EXPECT_TRUE(
      NewCpuOps(threads)
          ->Apply(function, View(DType::kF32, shape, x.data()), View(DType::kF32, shape, y.data()))
          .ok());
  return y;
}

Floats GradientOf(Pointwise function, const Floats& x, const Floats& dy, int threads = 1) {
  const Shape shape({static_cast<int64_t>(x.size())});
  Floats dx(x.size());
  EXPECT_TRUE(NewCpuOps(threads)
                  ->ApplyBackward(function, View(DType::kF32, shape, x.data()),
                                  View(DType::kF32, shape, dy.data()),
                                  View(DType::kF32, shape, dx.data()))
                  .ok());
  return dx;
}

double Share(Pointwise function, double x) {
  if (function == Pointwise::kExactGelu) return 0.5 * std::erfc(-x / std::sqrt(2.0));
  return 1 / (1 + std::exp(-2 * std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)));
}

double Slope(Pointwise function, double x) {
  const double s = Share(function, x);
  if (function == Pointwise::kExactGelu) return s + x * std::exp(-x * x / 2) / std::sqrt(2 * kPi);
  return s + x * s * (1 - s) * 2 * std::sqrt(2 / kPi) * (1 + 3 * 0.044715 * x * x);
}

class GeluTest : public testing::TestWithParam<Pointwise> {};

TEST(GeluTest, IsWhatPyTorchSays) {
  EXPECT_NEAR(ResultOf(Pointwise::kTanhGelu, {1})[0], 0.8411920, 1e-6);
  EXPECT_NEAR(ResultOf(Pointwise::kTanhGelu, {-1})[0], -0.1588080, 1e-6);
  EXPECT_NEAR(ResultOf(Pointwise::kExactGelu, {1})[0], 0.8413447, 1e-6);
  EXPECT_NEAR(ResultOf(Pointwise::kExactGelu, {-1})[0], -0.1586553, 1e-6);
}

TEST_P(GeluTest, ErrorsAreBounded) {
  Floats x;
  for (int i = -40000; i <= 40000; ++i) x.push_back(static_cast<float>(i) * 5e-4f);
  const Floats y = ResultOf(GetParam(), x);
  const Floats dx = GradientOf(GetParam(), x, Floats(x.size(), 1));
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = x[i] * Share(GetParam(), x[i]);
    ASSERT_NEAR(y[i], want, 4e-7 * std::max(1.0, std::abs(want))) << x[i];
    ASSERT_NEAR(dx[i], Slope(GetParam(), x[i]), 4e-7 * std::max(1.0f, std::abs(x[i]))) << x[i];
  }
}

TEST_P(GeluTest, TheSlopeIsTheNumericOne) {
  for (double x : {-3.0, -1.0, -0.1, 0.0, 0.4, 2.0}) {
    const double h = 1e-5, above = (x + h) * Share(GetParam(), x + h);
    const double below = (x - h) * Share(GetParam(), x - h);
    EXPECT_NEAR(GradientOf(GetParam(), {static_cast<float>(x)}, {2})[0],
                2 * (above - below) / (2 * h), 1e-6);
  }
}

TEST_P(GeluTest, HasItsLimitsAndKeepsNan) {
  const Floats x = {1e30f, kInfinity, -1e30f, -kInfinity, std::nanf(""), 0.0f};
  const Floats y = ResultOf(GetParam(), x), dx = GradientOf(GetParam(), x, Floats(6, 1));
  EXPECT_EQ(y[0], 1e30f);
  EXPECT_EQ(y[1], kInfinity);
  EXPECT_NEAR(y[2], 0, 1e-36);
  EXPECT_NEAR(y[3], 0, 1e-36);
  EXPECT_TRUE(std::isnan(y[4]) && std::isnan(dx[4]));
  EXPECT_EQ(y[5], 0);
  EXPECT_EQ(dx[0], 1);
  EXPECT_EQ(dx[1], 1);
  EXPECT_NEAR(dx[2], 0, 1e-35);
  EXPECT_NEAR(dx[3], 0, 1e-35);
}

TEST_P(GeluTest, AnElementsValueDependsOnNothingElse) {
  const Floats x = RandomFloats(20011, 1, 4), dy = RandomFloats(20011, 2);
  const Floats y = ResultOf(GetParam(), x), dx = GradientOf(GetParam(), x, dy);
  EXPECT_EQ(ResultOf(GetParam(), x, 3), y);
  EXPECT_EQ(GradientOf(GetParam(), x, dy, 3), dx);
  for (int i : {0, 1, 777, 20010}) {
    EXPECT_EQ(ResultOf(GetParam(), {x[i]})[0], y[i]);
    EXPECT_EQ(GradientOf(GetParam(), {x[i]}, {dy[i]})[0], dx[i]);
  }
}

TEST_P(GeluTest, BF16IsTheRoundedResultAndMayStandInItsInput) {
  const Shape shape({1003});
  TestTensor x(DType::kBF16, shape, RandomFloats(1003, 1, 4));
  TestTensor dy(DType::kBF16, shape, RandomFloats(1003, 2));
  const Floats wide_y = ResultOf(GetParam(), x.Read());
  const Floats wide_dx = GradientOf(GetParam(), x.Read(), dy.Read());
  const auto ops = NewCpuOps(1);
  ASSERT_TRUE(ops->ApplyBackward(GetParam(), x.view(), dy.view(), dy.view()).ok());
  ASSERT_TRUE(ops->Apply(GetParam(), x.view(), x.view()).ok());
  EXPECT_EQ(x.Read(), TestTensor(DType::kBF16, shape, wide_y).Read());
  EXPECT_EQ(dy.Read(), TestTensor(DType::kBF16, shape, wide_dx).Read());
}

INSTANTIATE_TEST_SUITE_P(Kinds, GeluTest,
                         testing::Values(Pointwise::kTanhGelu, Pointwise::kExactGelu),
                         [](const auto& info) {
                           return info.param == Pointwise::kTanhGelu ? "Tanh" : "Exact";
                         });

TEST(TanhTest, ErrorsAreBounded) {
  Floats x = {0, kInfinity, -kInfinity, 1e30f};
  for (int i = -30000; i <= 30000; ++i) x.push_back(static_cast<float>(i) * 5e-4f);
  const Floats y = ResultOf(Pointwise::kTanh, x);
  const Floats dx = GradientOf(Pointwise::kTanh, x, Floats(x.size(), 1));
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::tanh(double{x[i]});
    ASSERT_NEAR(y[i], want, 4e-7) << x[i];
    ASSERT_NEAR(dx[i], 1 - want * want, 8e-7) << x[i];
  }
  EXPECT_TRUE(std::isnan(ResultOf(Pointwise::kTanh, {std::nanf("")})[0]));
}

struct SwigluPass {
  Floats y, dx;

  SwigluPass(int threads, int64_t rows, int64_t features, const Floats& x, const Floats& dy)
      : y(rows * features), dx(2 * rows * features) {
    const Shape wide({rows, 2 * features}), narrow({rows, features});
    const TensorView in = View(DType::kF32, wide, x.data());
    const auto ops = NewCpuOps(threads);
    EXPECT_TRUE(ops->Swiglu(in, View(DType::kF32, narrow, y.data())).ok());
    EXPECT_TRUE(ops->SwigluBackward(in, View(DType::kF32, narrow, dy.data()),
                                    View(DType::kF32, wide, dx.data()))
                    .ok());
  }
};

TEST(SwigluTest, GatesTheSecondHalfByTheFirst) {
  const SwigluPass pass(1, 2, 2, {0, 1, 5, 3, -1, 2, 7, -1}, {1, 1, 1, 1});
  EXPECT_NEAR(pass.y[0], 0, 1e-7);
  EXPECT_NEAR(pass.y[1], 3 * 0.7310586, 1e-6);
  EXPECT_NEAR(pass.y[2], -7 * 0.2689414, 1e-6);
  EXPECT_NEAR(pass.y[3], -2 * 0.8807971, 1e-6);
}

TEST(SwigluTest, ErrorsAreBounded) {
  constexpr int64_t kRows = 300, kFeatures = 37;
  const Floats x = RandomFloats(2 * kRows * kFeatures, 1, 12),
               dy = RandomFloats(kRows * kFeatures, 2);
  const SwigluPass pass(2, kRows, kFeatures, x, dy);
  for (int64_t i = 0; i < kRows * kFeatures; ++i) {
    const int64_t at = i / kFeatures * 2 * kFeatures + i % kFeatures;
    const double gate = x[at], up = x[at + kFeatures], s = 1 / (1 + std::exp(-gate));
    const double bound = 4e-7 * std::max(1.0, std::abs(gate)) * std::max(1.0, std::abs(up));
    ASSERT_NEAR(pass.y[i], gate * s * up, bound);
    ASSERT_NEAR(pass.dx[at], dy[i] * up * s * (1 + gate * (1 - s)), bound);
    ASSERT_NEAR(pass.dx[at + kFeatures], dy[i] * gate * s, bound);
  }
}

TEST(SwigluTest, ARowDependsOnNoOther) {
  constexpr int64_t kRows = 500, kFeatures = 37;
  const Floats x = RandomFloats(2 * kRows * kFeatures, 1, 4),
               dy = RandomFloats(kRows * kFeatures, 2);
  const SwigluPass one(1, kRows, kFeatures, x, dy), three(3, kRows, kFeatures, x, dy);
  EXPECT_EQ(one.y, three.y);
  EXPECT_EQ(one.dx, three.dx);
  const SwigluPass last(1, 1, kFeatures, Floats(x.end() - 2 * kFeatures, x.end()),
                        Floats(dy.end() - kFeatures, dy.end()));
  EXPECT_EQ(last.y, Floats(one.y.end() - kFeatures, one.y.end()));
  EXPECT_EQ(last.dx, Floats(one.dx.end() - 2 * kFeatures, one.dx.end()));
}

TEST(SwigluTest, BF16IsTheRoundedResult) {
  constexpr int64_t kRows = 5, kFeatures = 19;
  const Shape wide({kRows, 2 * kFeatures}), narrow({kRows, kFeatures});
  TestTensor x(DType::kBF16, wide, RandomFloats(2 * kRows * kFeatures, 1, 4)),
      dx(DType::kBF16, wide);
  TestTensor dy(DType::kBF16, narrow, RandomFloats(kRows * kFeatures, 2)), y(DType::kBF16, narrow);
  const auto ops = NewCpuOps(1);
  ASSERT_TRUE(ops->Swiglu(x.view(), y.view()).ok());
  ASSERT_TRUE(ops->SwigluBackward(x.view(), dy.view(), dx.view()).ok());
  const SwigluPass pass(1, kRows, kFeatures, x.Read(), dy.Read());
  EXPECT_EQ(y.Read(), TestTensor(DType::kBF16, narrow, pass.y).Read());
  EXPECT_EQ(dx.Read(), TestTensor(DType::kBF16, wide, pass.dx).Read());
}

TEST(SwigluTest, OfExtremeGatesIsTheOtherHalfOrNothing) {
  const SwigluPass pass(1, 1, 3, {200, -200, std::nanf(""), 3, 3, 3}, {1, 1, 1});
  EXPECT_EQ(pass.y[0], 600);
  EXPECT_NEAR(pass.y[1], 0, 1e-35);
  EXPECT_TRUE(std::isnan(pass.y[2]));
}

}  // namespace
}  // namespace thinwire::cpu
