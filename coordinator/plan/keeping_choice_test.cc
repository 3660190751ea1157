#include "coordinator/plan/keeping_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
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
      one.kind = static_cast<int>(blocks.size());
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
    tried.stage_seconds = seconds;
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
    TriedKeepings tried{{5}, {10}, 10};
    for (const Keeping keeping : keepings) {
      tried.stage_bytes[0] += keeping == Keeping::kKeep ? 10 : keeping == Keeping::kSwap ? 0 : 2;
      tried.step_seconds += keeping == Keeping::kRecompute ? 1 : 0;
      tried.stage_seconds[0] += keeping == Keeping::kKeep ? 0 : keeping == Keeping::kSwap ? 2 : 1;
    }
    return tried;
  };
  const KeepingChoice choice = *ChooseKeepings(stages.blocks, {17}, tries);
  EXPECT_EQ(choice.tried.step_seconds, 10);
  EXPECT_THAT(choice.keepings, ::testing::Contains(Keeping::kSwap));
}

// One stage whose copies take as long as they have bytes, beside a computation of `seconds`.
class CopyingStage {
 public:
  struct Block {
    int64_t bytes = 0;
    double again = 0;
  };
  CopyingStage(double seconds, std::vector<Block> own) : seconds_(seconds), own_(std::move(own)) {
    for (const Block& block : own_) {
      const auto copies = static_cast<double>(block.bytes);
      blocks.push_back({0, static_cast<int>(blocks.size()), {}});
      blocks.back().options = {{Keeping::kRecompute, block.bytes * 3 / 4, block.again, 0},
                               {Keeping::kSwap, block.bytes, 0, copies}};
    }
  }

  absl::StatusOr<TriedKeepings> operator()(const std::vector<Keeping>& keepings) {
    ++tries;
    double copies = 0, seconds = seconds_;
    int64_t bytes = 0;
    for (size_t i = 0; i < own_.size(); ++i) {
      const Block& block = own_[i];
      if (keepings[i] == Keeping::kKeep) bytes += block.bytes;
      if (keepings[i] == Keeping::kRecompute) bytes += block.bytes / 4;
      if (keepings[i] == Keeping::kRecompute) seconds += block.again;
      if (keepings[i] == Keeping::kSwap) copies += static_cast<double>(block.bytes);
    }
    const double busy = std::max(seconds, copies);
    return TriedKeepings{{bytes}, {busy}, busy};
  }

  std::vector<ChoosingBlock> blocks;
  int tries = 0;

 private:
  const double seconds_;
  const std::vector<Block> own_;
};

TEST(KeepingChoiceTest, CopiesTakeWhatRunningAgainIsDearFor) {
  // Early blocks of a ResNet keep more for as many FLOPs. The copies that hide are the late ones'.
  CopyingStage stage(40, {{40, 1}, {40, 1}, {20, 1}, {20, 1}, {20, 9}, {20, 9}});
  const KeepingChoice choice = *ChooseKeepings(stage.blocks, {60}, std::ref(stage));
  EXPECT_EQ(choice.keepings[0], Keeping::kRecompute);
  EXPECT_EQ(choice.keepings[1], Keeping::kRecompute);
  EXPECT_EQ(choice.tried.step_seconds, 42);
}

// Returns the shortest step of all choices that fit.
double ShortestStep(CopyingStage stage, int64_t limit) {
  constexpr Keeping kAll[] = {Keeping::kKeep, Keeping::kRecompute, Keeping::kSwap};
  const size_t blocks = stage.blocks.size();
  double shortest = std::numeric_limits<double>::infinity();
  for (int code = 0; code < std::pow(3, blocks); ++code) {
    std::vector<Keeping> keepings;
    for (int rest = code; keepings.size() < blocks; rest /= 3) keepings.push_back(kAll[rest % 3]);
    const TriedKeepings tried = *stage(keepings);
    if (tried.stage_bytes[0] <= limit) shortest = std::min(shortest, tried.step_seconds);
  }
  return shortest;
}

TEST(KeepingChoiceTest, StepsAreNearlyTheShortestOfSmallCases) {
  std::mt19937 random(1);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<uint32_t>(most - least + 1));
  };
  double sum = 0;
  constexpr int kCases = 40;
  for (int i = 0; i < kCases; ++i) {
    std::vector<CopyingStage::Block> blocks(7);
    int64_t all = 0;
    for (CopyingStage::Block& block : blocks) {
      block = {4 * draw(1, 20), static_cast<double>(draw(1, 20))};
      all += block.bytes;
    }
    CopyingStage stage(draw(20, 150), blocks);
    const int64_t limit = all * draw(1, 3) / 4;
    const KeepingChoice choice = *ChooseKeepings(stage.blocks, {limit}, std::ref(stage));
    ASSERT_TRUE(choice.fits);
    const double ratio = choice.tried.step_seconds / ShortestStep(stage, limit);
    EXPECT_LE(ratio, 1.15) << i;
    sum += ratio;
  }
  EXPECT_LE(sum / kCases, 1.01);
}

// Returns blocks that are all different.
std::vector<CopyingStage::Block> DifferentBlocks(int count) {
  std::vector<CopyingStage::Block> blocks;
  for (int i = 0; i < count; ++i) {
    blocks.push_back({100 + i % 97 + i, 1 + i % 7 + 0.001 * i});
  }
  return blocks;
}

int64_t BytesOf(const std::vector<CopyingStage::Block>& blocks) {
  int64_t all = 0;
  for (const CopyingStage::Block& block : blocks) all += block.bytes;
  return all;
}

TEST(KeepingChoiceTest, ManyBlocksThatAreAllDifferentEndTheSearchWithAShortStep) {
  const std::vector<CopyingStage::Block> blocks = DifferentBlocks(300);
  CopyingStage stage(1000, blocks);
  const int64_t limit = BytesOf(blocks) / 3;
  const KeepingChoice choice = *ChooseKeepings(stage.blocks, {limit}, std::ref(stage));
  EXPECT_TRUE(choice.fits);
  EXPECT_LE(choice.tried.stage_bytes[0], limit);
  EXPECT_LE(choice.tried.step_seconds, 2000);
  EXPECT_LE(stage.tries, kMostTries + 200);
}

TEST(KeepingChoiceTest, EachOfManyStagesHasItsShareOfTheSearch) {
  constexpr int kStages = 8;
  const std::vector<CopyingStage::Block> own = DifferentBlocks(40);
  std::vector<CopyingStage> stages(kStages, CopyingStage(100, own));
  std::vector<ChoosingBlock> blocks;
  for (int stage = 0; stage < kStages; ++stage) {
    for (ChoosingBlock block : stages[stage].blocks) {
      block.stage = stage;
      block.kind += stage * static_cast<int>(own.size());
      blocks.push_back(block);
    }
  }
  const TryKeepings tries = [&](const std::vector<Keeping>& keepings) {
    TriedKeepings tried;
    for (int stage = 0; stage < kStages; ++stage) {
      const auto begin = keepings.begin() + stage * own.size();
      const TriedKeepings one = *stages[stage]({begin, begin + own.size()});
      tried.stage_bytes.push_back(one.stage_bytes[0]);
      tried.stage_seconds.push_back(one.step_seconds);
      tried.step_seconds = std::max(tried.step_seconds, one.step_seconds);
    }
    return tried;
  };
  const int64_t limit = BytesOf(own) / 3;
  CopyingStage one(100, own);
  const KeepingChoice alone = *ChooseKeepings(one.blocks, {limit}, std::ref(one));
  const KeepingChoice all = *ChooseKeepings(blocks, std::vector<int64_t>(kStages, limit), tries);
  ASSERT_TRUE(all.fits);
  EXPECT_LE(all.tried.step_seconds, 1.1 * alone.tried.step_seconds);
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
