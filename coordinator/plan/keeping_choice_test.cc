#include "coordinator/plan/keeping_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace thinwire {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Stages of blocks that keep 10 bytes each, beside 5 bytes. Stages wait for one another, so a step
// takes as long as the slowest.
class Stages {
 public:
  // Each block has the stage, and the seconds of running again and of a swap.
  struct Block {
    int stage = 0;
    double again = 1, swap = 0;  // 0: cannot
  };
  explicit Stages(std::vector<Block> own) : own_(std::move(own)) {
    for (const Block& block : own_) {
      ChoosingBlock& one = blocks.emplace_back();
      one.stage = block.stage;
      one.options.push_back({Keeping::kRecompute, 8, block.again});
      if (block.swap > 0) one.options.push_back({Keeping::kSwap, 10, block.swap});
      stages_ = std::max(stages_, block.stage + 1);
    }
  }

  absl::StatusOr<TriedKeepings> operator()(const std::vector<Keeping>& keepings) {
    ++tries;
    TriedKeepings tried;
    tried.stage_bytes.assign(stages_, 5);
    std::vector<double> seconds(stages_, 10);
    for (size_t i = 0; i < own_.size(); ++i) {
      const Block& block = own_[i];
      const bool again = keepings[i] == Keeping::kRecompute, swaps = keepings[i] == Keeping::kSwap;
      tried.stage_bytes[block.stage] += again ? 2 : swaps ? 0 : 10;
      seconds[block.stage] += again ? block.again : swaps ? block.swap : 0;
    }
    tried.step_seconds = *std::max_element(seconds.begin(), seconds.end());
    return tried;
  }

  std::vector<ChoosingBlock> blocks;
  int tries = 0;

 private:
  const std::vector<Block> own_;
  int stages_ = 0;
};

KeepingChoice ChoiceOf(Stages stages, const std::vector<int64_t>& limits) {
  return *ChooseKeepings(stages.blocks, limits, std::ref(stages));
}

TEST(KeepingChoiceTest, WhatFitsKeepsAll) {
  const KeepingChoice choice = ChoiceOf(Stages({{0}, {0}}), {25});
  EXPECT_TRUE(choice.fits);
  EXPECT_THAT(choice.keepings, Each(Keeping::kKeep));
  EXPECT_EQ(choice.tried.step_seconds, 10);
  EXPECT_THAT(choice.least_bytes, ElementsAre(9));
}

TEST(KeepingChoiceTest, TheCheapestByteIsFreedFirst) {
  const KeepingChoice choice = ChoiceOf(Stages({{0, 3}, {0, 1}, {0, 2}}), {27});
  EXPECT_THAT(choice.keepings, ElementsAre(Keeping::kKeep, Keeping::kRecompute, Keeping::kKeep));
  EXPECT_EQ(choice.tried.step_seconds, 11);
  EXPECT_EQ(choice.plain.step_seconds, 10);
}

TEST(KeepingChoiceTest, ABlockDoesWhatFreesMoreIfTheFirstChoiceDoesNotSuffice) {
  const KeepingChoice choice = ChoiceOf(Stages({{0, 1, 2}, {0, 1, 2}}), {7});
  EXPECT_TRUE(choice.fits);
  EXPECT_THAT(choice.tried.stage_bytes, ElementsAre(7));
  EXPECT_EQ(choice.tried.step_seconds, 13);
  EXPECT_THAT(ChoiceOf(Stages({{0, 1, 2}, {0, 1, 2}}), {5}).keepings, Each(Keeping::kSwap));
}

TEST(KeepingChoiceTest, EachStageFitsByItself) {
  const KeepingChoice choice = ChoiceOf(Stages({{0}, {0}, {1}, {1}}), {17, 100});
  EXPECT_THAT(choice.tried.stage_bytes, ElementsAre(17, 25));
  EXPECT_THAT(choice.least_bytes, ElementsAre(9, 9));
}

TEST(KeepingChoiceTest, WhatASimulatedStepDoesNotNeedIsTakenBack) {
  // By the estimates running again is cheaper, but in a step what is moved costs nothing.
  Stages stages({{0, 1, 2}, {0, 1, 2}});
  const TryKeepings tries = [](const std::vector<Keeping>& keepings) {
    TriedKeepings tried{{5}, 10};
    for (const Keeping keeping : keepings) {
      tried.stage_bytes[0] += keeping == Keeping::kKeep ? 10 : keeping == Keeping::kSwap ? 0 : 2;
      tried.step_seconds += keeping == Keeping::kRecompute ? 1 : 0;
    }
    return tried;
  };
  const KeepingChoice choice = *ChooseKeepings(stages.blocks, {17}, tries);
  EXPECT_EQ(choice.tried.step_seconds, 10);
  EXPECT_THAT(choice.keepings, ::testing::Contains(Keeping::kSwap));
}

TEST(KeepingChoiceTest, WhatCannotFitSaysTheLeastOfEachStage) {
  const KeepingChoice choice = ChoiceOf(Stages({{0}, {1}, {1}}), {100, 8});
  EXPECT_FALSE(choice.fits);
  EXPECT_THAT(choice.least_bytes, ElementsAre(7, 9));
}

TEST(KeepingChoiceTest, ErrorsOfATryAreReturned) {
  const TryKeepings fails = [](const std::vector<Keeping>&) -> absl::StatusOr<TriedKeepings> {
    return absl::InternalError("no plan");
  };
  EXPECT_EQ(ChooseKeepings({}, {1}, fails).status(), absl::InternalError("no plan"));
}

}  // namespace
}  // namespace thinwire
