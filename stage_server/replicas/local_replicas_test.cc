#include "stage_server/replicas/local_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nn/cpu/ops.h"
#include "stage_server/replicas/fake_segment_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

// A segment with an optimizer.
struct Trained {
  explicit Trained(Ops* ops) : segment({{1, 2}, {3}}) {
    OptimizerSpec spec;
    spec.kind = OptimizerKind::kAdamW;
    optimizer = *NewOptimizer(spec, segment.parameters(), CpuDevice(), ops);
  }
  // Steps with a gradient that is the same in all elements.
  void Step(float gradient) {
    for (Parameter& parameter : segment.parameters()) {
      for (float& one : parameter.gradient.floats()) one = gradient;
    }
    EXPECT_TRUE(optimizer->Step(/*lr=*/0.1).ok());
  }
  std::vector<float> values() {
    std::vector<float> all;
    for (const Parameter& parameter : segment.parameters()) {
      const auto floats = parameter.value.floats();
      all.insert(all.end(), floats.begin(), floats.end());
    }
    return all;
  }

  FakeSegment segment;
  std::unique_ptr<Optimizer> optimizer;
};

class LocalReplicasTest : public ::testing::Test {
 protected:
  void Begin(int replicas, int carrier, int carriers, const OuterSpec& outer) {
    ExchangeOptions options;
    options.replicas.count = replicas;
    options.carrier = carrier;
    options.carriers = carriers;
    options.replicas.sync = ReplicaSync::kLocal;
    options.replicas.outer = outer;
    options.fragments = fragments_;
    options.replicas.fragments = fragments_.empty() ? 1 : 2;
    options.device = CpuDevice();
    options.ops = ops_.get();
    local_ = *LocalReplicas::New(options, {&here_.segment}, {here_.optimizer.get()});
  }
  void Train(int replica, uint64_t step, float gradient) {
    EXPECT_TRUE(local_->Load(replica, step).ok());
    here_.Step(gradient);
  }
  static std::vector<float> Floats(const std::vector<Parameter>& parameters) {
    std::vector<float> all;
    for (const Parameter& parameter : parameters) {
      const auto floats = parameter.value.floats();
      all.insert(all.end(), floats.begin(), floats.end());
    }
    return all;
  }

  std::map<std::string, int> fragments_;
  const std::unique_ptr<Ops> ops_ = NewCpuOps(/*threads=*/1);
  Trained here_{ops_.get()};
  std::unique_ptr<LocalReplicas> local_;
};

TEST_F(LocalReplicasTest, EachTrainsAsIfItWereAlone) {
  Begin(/*replicas=*/2, /*carrier=*/0, /*carriers=*/1, DefaultOuter(OuterKind::kSgd));
  Trained first(ops_.get()), second(ops_.get());
  uint64_t step = 0;
  for (const float gradient : {1.0f, -0.5f, 3.0f}) {
    ++step;
    Train(0, step, gradient);
    Train(1, step, -gradient * gradient);
    first.Step(gradient);
    second.Step(-gradient * gradient);
  }
  ASSERT_TRUE(local_->LoadShared().ok());
  EXPECT_THAT(here_.values(), ElementsAre(1, 2, 3));
  EXPECT_TRUE(local_->in_round());
  EXPECT_EQ(Floats(local_->Values(0)), first.values());
  EXPECT_EQ(Floats(local_->Values(1)), second.values());
  EXPECT_NE(first.values(), second.values());
}

TEST_F(LocalReplicasTest, ARoundEndsAtTheMeanWithWhatOptimizersRemember) {
  Begin(/*replicas=*/2, /*carrier=*/0, /*carriers=*/1, DefaultOuter(OuterKind::kSgd));
  Train(0, 1, 1);
  Train(1, 1, -1);
  ASSERT_TRUE(local_->LoadShared().ok());
  std::vector<float> sum(3);
  for (const int replica : {0, 1}) {
    ASSERT_TRUE(local_->LoadDifference(/*fragment=*/0, replica).ok());
    size_t i = 0;
    for (const Parameter& parameter : here_.segment.parameters()) {
      for (const float difference : parameter.gradient.floats()) sum[i++] += difference;
    }
  }
  size_t i = 0;
  for (Parameter& parameter : here_.segment.parameters()) {
    for (float& gradient : parameter.gradient.floats()) gradient = sum[i++];
  }
  ASSERT_TRUE(local_->Update(/*fragment=*/0).ok());
  ASSERT_TRUE(local_->Take({0}, /*mix=*/0).ok());
  EXPECT_FALSE(local_->in_round());
  // AdamW's first steps are 0.1 up and down.
  EXPECT_THAT(here_.values(), ElementsAre(1, 2, 3));
  EXPECT_NEAR(local_->drift(), 0.1 * std::sqrt(3 / 14.0), 1e-6);
  EXPECT_EQ(Floats(local_->Values(1)), here_.values());
  EXPECT_NE(local_->Inner(0)[0].tensor.floats()[0], local_->Inner(1)[0].tensor.floats()[0]);
}

TEST_F(LocalReplicasTest, AReplicaKeepsItsShareOfOneFragment) {
  fragments_ = {{"p1", 1}};
  Begin(/*replicas=*/2, /*carrier=*/0, /*carriers=*/1, DefaultOuter(OuterKind::kSgd));
  Train(0, 1, 1);  // to 0.9, 1.9 and 2.9
  ASSERT_TRUE(local_->LoadShared().ok());
  ASSERT_TRUE(local_->LoadDifference(/*fragment=*/1, 0).ok());
  EXPECT_EQ(here_.segment.parameters()[0].gradient.floats()[0], 0);
  EXPECT_NEAR(here_.segment.parameters()[1].gradient.floats()[0], 0.1, 1e-6);
  ASSERT_TRUE(local_->Update(/*fragment=*/1).ok());
  EXPECT_THAT(here_.values(), ElementsAre(1, 2, FloatNear(2.95, 1e-6)));
  ASSERT_TRUE(local_->Take({1}, /*mix=*/0.8).ok());
  EXPECT_THAT(Floats(local_->Values(0)),
              ElementsAre(FloatNear(0.9, 1e-6), FloatNear(1.9, 1e-6), FloatNear(2.91, 1e-6)));
  EXPECT_TRUE(local_->in_round());
}

TEST_F(LocalReplicasTest, AReplicaThatIsHereAloneTakesOneCopyOfTheValues) {
  const size_t before = CpuDevice()->bytes_in_use();
  const FakeSegment values_and_gradients({{1, 2}, {3}});
  const size_t two_copies = CpuDevice()->bytes_in_use() - before;
  Begin(/*replicas=*/3, /*carrier=*/2, /*carriers=*/3, DefaultOuter(OuterKind::kSgd));
  EXPECT_EQ(CpuDevice()->bytes_in_use() - before, two_copies + two_copies / 2);
  Begin(/*replicas=*/3, /*carrier=*/1, /*carriers=*/2, DefaultOuter(OuterKind::kSgd));
  EXPECT_GT(CpuDevice()->bytes_in_use() - before, two_copies + two_copies);
}

TEST_F(LocalReplicasTest, AReplicaThatIsHereAloneKeepsItsOptimizer) {
  Begin(/*replicas=*/3, /*carrier=*/2, /*carriers=*/3, DefaultOuter(OuterKind::kSgd));
  Trained alone(ops_.get());
  for (uint64_t step = 1; step <= 2; ++step) {
    Train(2, step, 1);
    ASSERT_TRUE(local_->LoadShared().ok());  // as between two calls of training
    alone.Step(1);
  }
  EXPECT_EQ(Floats(local_->Values(2)), alone.values());
  EXPECT_THAT(here_.values(), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace thinwire
