#include "stage_server/replicas/outer_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "nn/cpu/ops.h"
#include "stage_server/replicas/fake_segment_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

// Runs three steps on sums of differences of four replicas, and returns the values after each.
std::vector<float> AfterSteps(const OuterSpec& spec, const std::vector<float>& sums) {
  const std::unique_ptr<Ops> ops = NewCpuOps(/*threads=*/1);
  FakeSegment segment({{1.0f}});
  auto outer = *OuterOptimizer::New(spec, segment.pointers(), {&segment}, CpuDevice(), ops.get());
  std::vector<float> values;
  for (const float sum : sums) {
    segment.parameters()[0].gradient.floats()[0] = sum;
    EXPECT_TRUE(outer->Step(/*replicas=*/4).ok());
    EXPECT_EQ(segment.parameters()[0].gradient.floats()[0], 0);
    values.push_back(segment.parameters()[0].value.floats()[0]);
  }
  return values;
}

// v = momentum v + d;  x -= lr (d + momentum v), with d the mean difference. Nesterov's form as in
// torch.optim.SGD, which DiLoCo's authors use.
TEST(OuterOptimizerTest, NesterovLooksAhead) {
  OuterSpec spec = DefaultOuter(OuterKind::kNesterov);
  float x = 1, v = 0;
  std::vector<float> want;
  for (const float d : {0.2f, -0.1f, 0.4f}) {
    v = 0.9f * v + d;
    x -= 0.7f * (d + 0.9f * v);
    want.push_back(x);
  }
  EXPECT_THAT(AfterSteps(spec, {0.8f, -0.4f, 1.6f}), Pointwise(FloatNear(1e-6), want));
}

TEST(OuterOptimizerTest, SgdOfRateOneGoesToTheMean) {
  EXPECT_THAT(AfterSteps(DefaultOuter(OuterKind::kSgd), {2, -1, 0}), ElementsAre(0.5, 0.75, 0.75));
}

TEST(OuterOptimizerTest, MomentumIsStateUnderItsOwnName) {
  const std::unique_ptr<Ops> ops = NewCpuOps(/*threads=*/1);
  FakeSegment segment({{1, 2}, {3}});
  const auto state = [&](OuterKind kind) {
    return (*OuterOptimizer::New(DefaultOuter(kind), segment.pointers(), {&segment}, CpuDevice(),
                                 ops.get()))
        ->state();
  };
  const std::vector<OptimizerState> nesterov = state(OuterKind::kNesterov);
  ASSERT_EQ(nesterov.size(), 2u);
  EXPECT_EQ(nesterov[1].name, kOuterMomentum);
  EXPECT_EQ(nesterov[1].parameter, "p1");
  EXPECT_TRUE(state(OuterKind::kSgd).empty());
}

}  // namespace
}  // namespace thinwire
