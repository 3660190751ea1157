#include "nn/stiefel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "base/random.h"
#include "nn/cpu/ops.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

constexpr int64_t kRows = 3, kColumns = 10;

// Minimises -tr(W S W^T) with S = diag(10, 9, ..., 1). The best W spans the first three axes, which
// hold 27 of 55.
class StiefelTest : public testing::Test {
 protected:
  StiefelTest() {
    w_.spec.name = "w";
    w_.value = *Tensor::Allocate(CpuDevice(), DType::kF32, {kRows, kColumns});
    w_.gradient = *Tensor::Allocate(CpuDevice(), DType::kF32, {kRows, kColumns});
    momentum_ = *Tensor::Allocate(CpuDevice(), DType::kF32, {kRows, kColumns});
    for (float& m : momentum_.floats()) m = 0;
    RandomStream random(RandomKey(1, "w"));
    for (float& value : w_.value.floats()) value = 0.2f * (random.NextFloat() - 0.5f);
    NewtonSchulz products(CpuDevice(), ops_.get());
    EXPECT_TRUE(products.Apply(kNewtonsCubic, 40, {Data(w_.value), kRows, kColumns}).ok());
  }

  static float* Data(const Tensor& tensor) { return static_cast<float*>(tensor.data()); }

  double Captured() const {
    double sum = 0;
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      const auto value = static_cast<double>(w_.value.floats()[i]);
      sum += value * value * static_cast<double>(kColumns - i % kColumns);
    }
    return sum;
  }

  // Returns the greatest element of |W W^T - I|.
  double Error() const {
    double worst = 0;
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kRows; ++j) {
        double dot = i == j ? -1 : 0;
        for (int64_t k = 0; k < kColumns; ++k) {
          dot += static_cast<double>(w_.value.floats()[i * kColumns + k]) *
                 static_cast<double>(w_.value.floats()[j * kColumns + k]);
        }
        worst = std::max(worst, std::abs(dot));
      }
    }
    return worst;
  }

  void Step(StiefelDescent* descent, double rate, double gradient_scale = 1) {
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      w_.gradient.floats()[i] =
          -2 * w_.value.floats()[i] * static_cast<float>(kColumns - i % kColumns);
    }
    ASSERT_TRUE(descent->Step(rate, gradient_scale, w_, momentum_).ok());
    for (float g : w_.gradient.floats()) EXPECT_EQ(g, 0) << "not cleared";
  }

  std::unique_ptr<Ops> ops_ = NewCpuOps(1);
  Parameter w_;
  Tensor momentum_;
};

TEST_F(StiefelTest, DescendsToTheBestSpanAndRowsStayOrthonormal) {
  StiefelDescent descent(CpuDevice(), ops_.get());
  ASSERT_LT(Captured(), 22);
  for (int step = 0; step < 300; ++step) {
    Step(&descent, step < 150 ? 0.05 : 0.005);
    EXPECT_LT(Error(), 3e-6) << step;
  }
  EXPECT_GT(Captured(), 26.9);
}

TEST_F(StiefelTest, RowsStayOrthonormalAtAnyRate) {
  StiefelDescent descent(CpuDevice(), ops_.get());
  for (int step = 0; step < 20; ++step) {
    Step(&descent, 100);
    EXPECT_LT(Error(), 3e-6) << step;
  }
}

// The function does not change along W: a gradient normal to the manifold moves nothing.
TEST_F(StiefelTest, AGradientNormalToTheManifoldMovesNothing) {
  StiefelDescent descent(CpuDevice(), ops_.get());
  const std::vector<float> before(w_.value.floats().begin(), w_.value.floats().end());
  for (int64_t i = 0; i < kRows * kColumns; ++i) w_.gradient.floats()[i] = w_.value.floats()[i];
  ASSERT_TRUE(descent.Step(0.1, 1, w_, momentum_).ok());
  for (float m : momentum_.floats()) EXPECT_NEAR(m, 0, 1e-7);
}

TEST_F(StiefelTest, TheGradientsScaleComesBeforeTheMomentum) {
  StiefelDescent descent(CpuDevice(), ops_.get());
  Step(&descent, 0, /*gradient_scale=*/1);
  const std::vector<float> whole(momentum_.floats().begin(), momentum_.floats().end());
  for (float& m : momentum_.floats()) m = 0;
  Step(&descent, 0, /*gradient_scale=*/0.5);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(momentum_.floats()[i], 0.5f * whole[i], 1e-5) << i;
  }
}

}  // namespace
}  // namespace thinwire
