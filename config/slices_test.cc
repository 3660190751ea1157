#include "config/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/experiment.h"
#include "config/resolve_testing.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr char kText[] = R"(
model: {name: gpt2, layers: 3, heads: 2, width: 16}
data: {name: shakespeare, context: 24}
pipeline: {cuts: [h.0, h.1], schedule: terapipe, slices: 4}
optimizer: {lr: 0.1}
epochs: 1
)";

constexpr char kWhole[] = R"(
model: {name: gpt2, layers: 3, heads: 2, width: 16}
data: {name: shakespeare, context: 24}
optimizer: {lr: 0.1}
epochs: 1
)";

TEST(SlicesTest, StandInTheExperiment) {
  EXPECT_EQ(With({}, kText).pipeline().slices(), 4u);
  EXPECT_FALSE(With({}).pipeline().has_slices());
}

TEST(SlicesTest, WhatCannotBeIsRefusedWithItsName) {
  const auto error = [](const std::vector<std::string>& overrides) {
    return ErrorWith(overrides, kText);
  };
  EXPECT_THAT(error({"pipeline.slices=5"}),
              HasSubstr("pipeline.slices: 5, want a divisor of 24, the positions of a sequence"));
  EXPECT_THAT(error({"pipeline.slices=0"}), HasSubstr("pipeline.slices: 0, want a divisor of 24"));
  EXPECT_THAT(ErrorWith({"pipeline.schedule=terapipe"}, kWhole),
              HasSubstr("pipeline.slices: absent, want a divisor of 24"));
  EXPECT_THAT(error({"pipeline.schedule=gpipe"}),
              HasSubstr("pipeline.slices: 4, want none with schedule gpipe, or schedule terapipe"));
  EXPECT_THAT(error({"model.dropout=0.1"}), HasSubstr("terapipe with dropout 0.1"));
  EXPECT_THAT(
      error({"compression.gradients={codec: topk, ratio: 0.1, feedback: ef}"}),
      HasSubstr("compression.gradients.feedback.kind: ef, want none with schedule terapipe"));
  EXPECT_THAT(ErrorWith({"pipeline.schedule=terapipe", "pipeline.slices=4"}),
              HasSubstr("terapipe with model resnet8, want one of sequences"));
  EXPECT_THAT(error({"model.tied=false", "compression.bottleneck={kind: subspace, width: 8}"}),
              HasSubstr("terapipe with a bottleneck that reads token ids"));
}

// A message has six positions.
TEST(SlicesTest, TheSmallestMessageIsASlice) {
  const std::vector<std::string> codec = {"data.batch_size=1",
                                          "compression.activations={codec: low_rank, rank: 6}"};
  EXPECT_THAT(ErrorWith(codec, kText), HasSubstr("rank 6 of the smallest message [1, 6, 16]"));
}

}  // namespace
}  // namespace thinwire
