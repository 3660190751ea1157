#include "coordinator/run/fitted_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/experiment.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kText[] = R"(
name: fitted
model: {name: gpt2, layers: 4, heads: 2, width: 32, tied: false}
data: {name: shakespeare, context: 64, batch_size: 32}
pipeline: {cuts: [h.1], microbatches: 8}
optimizer: {lr: 0.1}
epochs: 1
)";

Experiment FittedWith(const std::vector<std::string>& overrides) {
  const auto experiment = ParseExperiment(kText, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

// Two stages whose hosts have the same memory.
std::vector<ServerMemory> Two(const std::string& host, const std::string& other, uint64_t bytes) {
  return {{0, host, bytes}, {1, other, bytes}};
}

std::string FirstOf(const absl::StatusOr<Experiment>& fitted) {
  EXPECT_TRUE(fitted.ok()) << fitted.status();
  return fitted.ok() ? fitted->pipeline().keep().at("h.0") : "";
}

TEST(FittedStagesTest, WithoutALimitNothingChanges) {
  const Experiment experiment = FittedWith({});
  EXPECT_TRUE(FitToServers(experiment, 1, Two("a", "b", 1), nullptr)->pipeline().keep().empty());
}

TEST(FittedStagesTest, ASizeIsEachStagesWhateverItsHostHas) {
  std::string told;
  const auto tell = [&told](const std::string& line) { told = line; };
  EXPECT_EQ(
      FirstOf(FitToServers(FittedWith({"pipeline.memory=6130000B"}), 1, Two("a", "b", 1), tell)),
      "recompute");
  EXPECT_THAT(told, StartsWith("memory of 5.85 MiB a stage: recompute h.0"));
  EXPECT_EQ(FirstOf(FitToServers(FittedWith({"pipeline.memory=1GB"}), 1, Two("a", "b", 1), tell)),
            "keep");
  EXPECT_THAT(told, HasSubstr("all blocks keep what they keep"));
}

TEST(FittedStagesTest, ServersOfOneHostShareItsMemory) {
  const Experiment experiment = FittedWith({"pipeline.memory=auto"});
  constexpr uint64_t kBytes = 29400000;
  EXPECT_EQ(FirstOf(FitToServers(experiment, 1, Two("a", "b", kBytes), nullptr)), "keep");
  EXPECT_EQ(FirstOf(FitToServers(experiment, 1, Two("a", "a", kBytes / 2), nullptr)), "recompute");
  EXPECT_FALSE(FitToServers(experiment, 1, Two("a", "b", 100000), nullptr).ok());
}

TEST(FittedStagesTest, AutoUsesNoStashThatChangesNumbers) {
  const std::vector<ServerMemory> small = Two("a", "a", 14700000);
  const Experiment lossy =
      FittedWith({"pipeline.memory=auto", "pipeline.stash={codec: uniform, bits: 2}"});
  const auto fitted = FitToServers(lossy, 1, small, nullptr);
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  EXPECT_EQ(fitted->pipeline().stash().bits(), 2u);
  for (const auto& [block, does] : fitted->pipeline().keep()) EXPECT_NE(does, "stash") << block;
}

}  // namespace
}  // namespace thinwire
