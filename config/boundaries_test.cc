#include "config/boundaries.h"

#include "config/experiment.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(CutNamesTest, TheUncutModelHasNone) {
  Experiment experiment;
  experiment.mutable_pipeline()->add_cuts("none");
  EXPECT_TRUE(CutNames(experiment).empty());
  experiment.mutable_pipeline()->set_cuts(0, "layer1");
  EXPECT_EQ(CutNames(experiment), std::vector<std::string>{"layer1"});
}

TEST(CutNamesTest, TheTiedCutIsTheLast) {
  Experiment experiment;
  experiment.mutable_pipeline()->add_cuts("h.0");
  (*experiment.mutable_compression()->mutable_boundaries())["tied"].mutable_gradients();
  EXPECT_EQ(CutNames(experiment), (std::vector<std::string>{"h.0", "tied"}));
}

TEST(CutNamesTest, ABlockMayBeCalledTiedWhereNoWeightIs) {
  Experiment experiment;
  experiment.mutable_pipeline()->add_cuts("tied");
  (*experiment.mutable_compression()->mutable_boundaries())["tied"].mutable_gradients();
  EXPECT_EQ(CutNames(experiment), std::vector<std::string>{"tied"});
}

TEST(RemembersMessagesTest, ACutOrReplicasDo) {
  constexpr char kFile[] =
      "{data: {name: shakespeare}, model: {name: gpt2, layers: 2, heads: 2, width: 16},"
      " pipeline: {cuts: [h.0]}, optimizer: {lr: 0.1}, replicas: {count: 2}, epochs: 1}";
  const auto remembers = [&kFile](const std::string& set) {
    return RemembersMessages(*ParseExperiment(kFile, "test", {set}));
  };
  EXPECT_FALSE(remembers("compression.activations={codec: uniform, bits: 4}"));
  EXPECT_TRUE(remembers("compression.activations={codec: uniform, bits: 4, outliers: 2}"));
  EXPECT_TRUE(remembers("compression.gradients={codec: topk, ratio: 0.1, feedback: ef}"));
  EXPECT_FALSE(remembers("replicas.contributions={codec: ecsq, rate: 2}"));
  EXPECT_TRUE(remembers("replicas.contributions={codec: ecsq, rate: 2, feedback: ef}"));
}

}  // namespace
}  // namespace thinwire
