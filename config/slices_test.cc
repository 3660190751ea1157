#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "config/resolve_testing.h"
#include "config/sections.h"
#include "config/specs.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
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
  EXPECT_THAT(With({}, kText).pipeline().slices(), ElementsAre("4"));
  EXPECT_THAT(With({"pipeline.slices=[10, 14]"}, kText).pipeline().slices(),
              ElementsAre("10", "14"));
  EXPECT_THAT(With({}).pipeline().slices(), ElementsAre());
}

std::vector<int64_t> SlicesWith(const std::vector<std::string>& overrides, const char* text) {
  const Experiment experiment = With(overrides, text);
  return *SlicesFrom(experiment, ModelFrom(experiment)->positions);
}

TEST(SlicesTest, AModelOfWholeSequencesIsRefused) {
  const std::string error = ErrorWith(
      {"model={name: bert, layers: 3, heads: 2, width: 16}", "pipeline.cuts=[layer.0, layer.1]",
       "data.tokens=word_piece", "data.objective=masked",
       "data.corpus={vocabulary: 65, train_tokens: 999, test_tokens: 999}"},
      kText);
  EXPECT_THAT(error, HasSubstr("pipeline.schedule: terapipe with a layer attention of whole "
                               "sequences in block layer.0, want a causal model"));
}

TEST(SlicesTest, AreAsManyOrAsLongAsTheExperimentSays) {
  EXPECT_THAT(SlicesWith({}, kText), ElementsAre(6, 6, 6, 6));
  EXPECT_THAT(SlicesWith({"pipeline.slices=[10, 14]"}, kText), ElementsAre(10, 14));
  EXPECT_THAT(SlicesWith({}, kWhole), ElementsAre());
  EXPECT_EQ(UnitsOf(With({"pipeline.microbatches=3"}, kText)), 12u);
  EXPECT_EQ(UnitsOf(With({"pipeline.slices=[10, 14]"}, kText)), 2u);
  EXPECT_EQ(UnitsOf(With({}, kWhole)), 1u);
}

// Slices pay for this network; later ones, whose positions attend to more, are shorter.
TEST(SlicesTest, AutoMakesThemOfTheModel) {
  constexpr char kLong[] = R"(
model: {name: gpt2, layers: 3, heads: 2, width: 64}
data: {name: shakespeare, context: 512, batch_size: 16}
pipeline: {cuts: [h.0, h.1], schedule: terapipe}
optimizer: {lr: 0.1}
epochs: 1
)";
  const std::vector<int64_t> slices = SlicesWith({}, kLong);
  ASSERT_GT(slices.size(), 2u);
  EXPECT_GT(slices.front(), slices.back());
  EXPECT_EQ(SlicesWith({"pipeline.slices=auto"}, kLong), slices);
  // Microbatches fill the pipeline, too, so slices are fewer; one stage has nothing to fill.
  EXPECT_LT(SlicesWith({"pipeline.microbatches=4"}, kLong).size(), slices.size());
  EXPECT_THAT(With({"pipeline.stages=1"}, kLong).pipeline().slices(), ElementsAre("1"));
}

TEST(SlicesTest, WhatCannotBeIsRefusedWithItsName) {
  const auto error = [](const std::vector<std::string>& overrides) {
    return ErrorWith(overrides, kText);
  };
  EXPECT_THAT(error({"pipeline.slices=5"}),
              HasSubstr("pipeline.slices: 5, want auto, a divisor of 24, the positions of a "
                        "sequence, or those of each slice, 24 in all"));
  for (const char* wrong : {"0", "48", "many", "[12, 13]", "[auto, 12]", "[-12, 36]", "[24, 0]"}) {
    EXPECT_THAT(error({absl::StrCat("pipeline.slices=", wrong)}),
                HasSubstr("want auto, a divisor of 24"))
        << wrong;
  }
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

// A slice of the message has six positions.
TEST(SlicesTest, TheSmallestMessageIsASlice) {
  const std::vector<std::string> codec = {"data.batch_size=1",
                                          "compression.activations={codec: low_rank, rank: 6}"};
  EXPECT_THAT(ErrorWith(codec, kText), HasSubstr("rank 6 of the smallest message [1, 6, 16]"));
}

}  // namespace
}  // namespace thinwire
