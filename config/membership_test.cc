#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/experiment.h"
#include "config/sections.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Experiment> WithMembers(const std::vector<std::string>& overrides) {
  constexpr char kFile[] =
      "{data: {name: shakespeare}, model: {name: gpt2, layers: 2, heads: 2, width: 16},"
      " optimizer: {lr: 0.1}, replicas: {count: 2}, epochs: 1}";
  return ParseExperiment(kFile, "test", overrides);
}

std::string MembersRefusal(std::vector<std::string> overrides) {
  overrides.push_back("membership.open=true");
  return std::string(WithMembers(overrides).status().message());
}

TEST(MembershipConfigTest, IsClosedUnlessOpen) {
  EXPECT_FALSE(HasOpenMembership(*WithMembers({})));
  EXPECT_FALSE(HasOpenMembership(*WithMembers({"membership={}"})));
  EXPECT_TRUE(HasOpenMembership(*WithMembers({"membership.open=true"})));
}

TEST(MembershipConfigTest, TheFewestPipelinesAreAtLeastOne) {
  EXPECT_EQ(WithMembers({"membership.open=true"})->membership().least(), 1u);
  EXPECT_THAT(MembersRefusal({"membership.least=0"}),
              HasSubstr("membership.least: 0, want 1 to 2, the number of replicas"));
  EXPECT_THAT(MembersRefusal({"membership.least=3"}),
              HasSubstr("membership.least: 3, want 1 to 2"));
  EXPECT_THAT(std::string(WithMembers({"membership.least=2"}).status().message()),
              HasSubstr("membership.least: 2, want membership.open: true with it"));
}

TEST(MembershipConfigTest, RefusesWhatOthersCannotGoOnWith) {
  EXPECT_THAT(MembersRefusal({"replicas.count=1"}),
              HasSubstr("membership.open: true with one replica, want replicas.count: at least 2"));
  EXPECT_THAT(MembersRefusal({"tensor.parts=2"}),
              HasSubstr("membership.open: true with tensor.parts: 2, want 1"));
}

TEST(MembershipConfigTest, WhatAMachineAloneHasIsKeptInCheckpoints) {
  const std::vector<std::vector<std::string>> all = {
      {"replicas.sync=local", "replicas.every=4"},
      {"pipeline.cuts=[embedding, h.0]", "freeze=embedding"},
      {"replicas.contributions={codec: topk, ratio: 0.1, feedback: ef}"}};
  for (std::vector<std::string> overrides : all) {
    EXPECT_THAT(
        MembersRefusal({overrides[0], overrides.back(), "checkpoint.every_epochs=0"}),
        HasSubstr("membership.open: true with checkpoint.every_epochs: 0, want checkpoints"));
    overrides.push_back("membership.open=true");
    const absl::StatusOr<Experiment> experiment = WithMembers(overrides);
    ASSERT_TRUE(experiment.ok()) << experiment.status();
    EXPECT_FALSE(KeepsStates(*experiment));
  }
  EXPECT_TRUE(KeepsStates(*WithMembers({"membership.open=true", "checkpoint.every_epochs=0"})));
  EXPECT_FALSE(KeepsStates(*WithMembers({})));
}

}  // namespace
}  // namespace thinwire
