// Tests pipeline.keep and pipeline.memory.
#include "config/kept.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/experiment.h"
#include "config/resolve_testing.h"
#include "config/specs.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Returns what the block of that name does.
BlockKeeping KeepingIn(const Experiment& e, const std::string& name) {
  const Partition partition = *PartitionFrom(e);
  const std::vector<BlockKeeping> keepings = *KeepingsFrom(e, partition.model);
  EXPECT_EQ(keepings.size(), partition.model.blocks.size());
  for (size_t i = 0; i < keepings.size(); ++i) {
    if (partition.model.blocks[i].name == name) return keepings[i];
  }
  ADD_FAILURE() << name;
  return {};
}

const std::string kStashIn4Bits = "pipeline.stash={codec: uniform, bits: 4}";

TEST(KeptTest, BlocksFollowTheGeneralFields) {
  EXPECT_EQ(KeepingIn(With({}), "layer1.0"), Only(Keeping::kKeep));
  EXPECT_EQ(KeepingIn(With({"pipeline.recompute=blocks"}), "layer1.0"), Only(Keeping::kRecompute));
  EXPECT_EQ(KeepingIn(With({"pipeline.recompute=blocks"}), "head"), Only(Keeping::kKeep));
  EXPECT_EQ(KeepingIn(With({kStashIn4Bits}), "layer1.0"), Only(Keeping::kStash));
  const BlockKeeping both =
      KeepingIn(With({kStashIn4Bits, "pipeline.recompute=blocks"}), "layer1.0");
  EXPECT_TRUE(both.recompute && both.stash && !both.swap);
}

TEST(KeptTest, ABlocksOwnChoiceTakesPrecedence) {
  const Experiment e =
      With({kStashIn4Bits, "pipeline.recompute=blocks", "pipeline.swap=disk",
            "pipeline.keep={layer1.0: keep, layer2.0: swap}", "pipeline.keep.layer3.0=recompute"});
  EXPECT_EQ(KeepingIn(e, "layer1.0"), Only(Keeping::kKeep));
  EXPECT_EQ(KeepingIn(e, "layer2.0"), Only(Keeping::kSwap));
  EXPECT_EQ(KeepingIn(e, "layer3.0"), Only(Keeping::kRecompute));
  const BlockKeeping other = KeepingIn(e, "stem");
  EXPECT_TRUE(other.stash && other.swap);
  const auto again = ParseExperiment(ToYaml(e), "again.yaml", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(KeepingIn(*again, "layer3.0"), Only(Keeping::kRecompute));
}

TEST(KeptTest, WhatCannotBeKeptSoIsRefusedByName) {
  EXPECT_THAT(ErrorWith({"pipeline.keep={layer1.1: keep}"}),
              HasSubstr("pipeline.keep: unknown block \"layer1.1\"; did you mean layer1.0?"));
  EXPECT_THAT(
      ErrorWith({"pipeline.keep={layer1.0: recomput}"}),
      HasSubstr("pipeline.keep.layer1.0: unknown choice \"recomput\"; did you mean recompute?"));
  EXPECT_THAT(ErrorWith({"pipeline.keep={head: recompute}"}),
              HasSubstr("pipeline.keep.head: recompute, want another: it keeps no more than its "
                        "input"));
  EXPECT_THAT(ErrorWith({"pipeline.keep={layer1.0: stash}"}),
              HasSubstr("pipeline.keep.layer1.0: stash, want pipeline.stash with it"));
  EXPECT_THAT(ErrorWith({"pipeline.keep={layer1.0: swap}"}),
              HasSubstr("pipeline.keep.layer1.0: swap, want pipeline.swap with it: host or disk"));
}

TEST(KeptTest, StagesThatDoNotTrainKeepTheLeast) {
  Experiment e = With({"pipeline.memory=1GiB", "pipeline.swap=disk", "pipeline.keep={head: keep}"});
  KeepLeast(&e);
  EXPECT_EQ(KeepingIn(e, "layer1.0"), Only(Keeping::kRecompute));
  EXPECT_FALSE(Swaps(e));
  EXPECT_FALSE(e.pipeline().has_memory());
  Experiment unlimited = With({"pipeline.keep={layer1.0: recompute}"});
  KeepLeast(&unlimited);
  EXPECT_EQ(KeepingIn(unlimited, "layer2.0"), Only(Keeping::kKeep)) << "without a limit as it says";
}

TEST(KeptTest, WhatMachinesHaveLeftIsNoLimitWhereTheyComeAndGo) {
  EXPECT_THAT(ErrorWith({"pipeline.memory=auto", "replicas.count=2", "membership.open=true"}),
              HasSubstr("pipeline.memory: auto with membership.open, want a size"));
}

TEST(KeptTest, MemoryIsASizeOrAuto) {
  EXPECT_FALSE(MemoryLimitFrom(With({}))->has_value());
  EXPECT_EQ(MemoryLimitFrom(With({"pipeline.memory=12GiB"}))->value().bytes, 12ULL << 30);
  EXPECT_FALSE(MemoryLimitFrom(With({"pipeline.memory=auto"}))->value().bytes.has_value());
  EXPECT_THAT(ErrorWith({"pipeline.memory=lots"}),
              HasSubstr("pipeline.memory: \"lots\", want a number of bytes of at least 1, as 12GiB "
                        "or 500MB, or auto"));
}

}  // namespace
}  // namespace thinwire
