#include "coordinator/plan/choices.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr char kExperiment[] = R"(
model: {name: resnet8, width: 16}
data: {name: digits, batch_size: 64}
pipeline: {cuts: [layer1, layer2, layer3], microbatches: 4}
compression: {activations: {codec: topk, ratio: 0.1, feedback: ef21}}
optimizer: {lr: 0.1}
epochs: 1
)";

Experiment With(const std::vector<std::string>& overrides = {}) {
  const auto experiment = ParseExperiment(kExperiment, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

ChoiceOptions Trying(const std::vector<std::string>& codecs,
                     const std::vector<int64_t>& microbatches = {}) {
  ChoiceOptions options;
  options.codecs = codecs;
  options.microbatches = microbatches;
  return options;
}

std::set<std::string> CodecsIn(const Candidates& candidates) {
  std::set<std::string> names;
  for (const Candidate& one : candidates.all) names.insert(one.codec);
  return names;
}

std::string ErrorOf(const ChoiceOptions& options) {
  return std::string(CandidatesFor(With(), options).status().message());
}

TEST(CandidatesTest, AreAllCombinationsWithNoneAndTheOwnCodec) {
  const auto candidates = CandidatesFor(With(), Trying({"fp16", "uniform(bits=4) | fp16"}));
  ASSERT_TRUE(candidates.ok()) << candidates.status();
  EXPECT_THAT(CodecsIn(*candidates),
              UnorderedElementsAre("the file's", "none", "fp16", "uniform(bits=4) | fp16"));
  std::set<uint32_t> microbatches;
  std::set<std::string> schedules;
  int own = 0;
  for (const Candidate& one : candidates->all) {
    microbatches.insert(one.experiment.pipeline().microbatches());
    schedules.insert(one.experiment.pipeline().schedule());
    own += one.is_own;
    if (one.codec == "the file's") {
      EXPECT_EQ(one.experiment.compression().activations().feedback().kind(), "ef21");
    } else {
      EXPECT_EQ(one.experiment.compression().activations().feedback().kind(), "none");
    }
  }
  EXPECT_THAT(microbatches, ElementsAre(2, 4, 8));
  // interleaved needs two segments a stage, terapipe needs sequences.
  const size_t had = thinwire::AllOf<ScheduleKind>().size() - 2;
  EXPECT_EQ(schedules.size(), had);
  EXPECT_EQ(candidates->all.size(), 4 * 3 * had);
  EXPECT_EQ(own, 1);
  EXPECT_THAT(candidates->left_out, ElementsAre());
}

TEST(CandidatesTest, AnExperimentWithoutCodecsIsNoneItself) {
  const auto candidates = CandidatesFor(
      With({"compression.activations={codec: none, feedback: none}"}), Trying({"none", "fp16"}));
  ASSERT_TRUE(candidates.ok()) << candidates.status();
  EXPECT_THAT(CodecsIn(*candidates), UnorderedElementsAre("none", "fp16"));
  EXPECT_TRUE(std::any_of(candidates->all.begin(), candidates->all.end(),
                          [](const Candidate& one) { return one.is_own; }));
}

TEST(CandidatesTest, MicrobatchesHaveTheBatchAsTheirBound) {
  const auto counts = [](const std::vector<std::string>& overrides) {
    std::set<uint32_t> all;
    const auto candidates = CandidatesFor(With(overrides), Trying({}));
    for (const Candidate& one : candidates->all) {
      all.insert(one.experiment.pipeline().microbatches());
    }
    return all;
  };
  EXPECT_THAT(counts({"pipeline.microbatches=1"}), ElementsAre(1, 2));
  EXPECT_THAT(counts({"pipeline.microbatches=40"}), ElementsAre(20, 40, 64));
  for (const int64_t count : {int64_t{0}, int64_t{-1}, int64_t{65}, int64_t{1} << 33}) {
    EXPECT_EQ(ErrorOf(Trying({}, {1, count})),
              absl::StrCat("--microbatches: ", count, ", want 1 to 64, the batch size"));
  }
}

TEST(CandidatesTest, SlicesAreTriedWhereTheyAreAskedFor) {
  constexpr char kText[] = R"(
model: {name: gpt2, layers: 3, heads: 2, width: 16}
data: {name: shakespeare, context: 24, batch_size: 8}
pipeline: {cuts: [h.0, h.1], schedule: terapipe, slices: 4}
optimizer: {lr: 0.1}
epochs: 1
)";
  ChoiceOptions options;
  options.microbatches = {1};
  const auto slices = [&](const std::vector<std::string>& schedules) {
    options.schedules.clear();
    for (const std::string& one : schedules) options.schedules.push_back(*ScheduleToTry(one));
    const auto candidates = CandidatesFor(*ParseExperiment(kText, "test", {}), options);
    EXPECT_TRUE(candidates.ok()) << candidates.status();
    std::vector<std::string> all;
    for (const Candidate& one : candidates->all) {
      const PipelineConfig& pipeline = one.experiment.pipeline();
      all.push_back(absl::StrCat(one.schedule, " ", absl::StrJoin(pipeline.slices(), "+"),
                                 one.is_own ? "!" : ""));
    }
    return all;
  };
  EXPECT_THAT(slices({}), ElementsAre("gpipe ", "1f1b ", "zero_bubble ", "terapipe:4 4!"));
  EXPECT_THAT(slices({"1f1b", "terapipe:2", "terapipe:4", "terapipe:5"}),
              ElementsAre("1f1b ", "terapipe:2 2", "terapipe:4 4!"));
  EXPECT_THAT(slices({"terapipe:auto", "terapipe"}),
              ElementsAre("terapipe:auto 1", "terapipe:4 4!"));
  for (const char* wrong : {"1f1b:2", "1f1b:auto", "terapipe:", "terapipe:0", "tera"}) {
    EXPECT_EQ(ScheduleToTry(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(CandidatesTest, StagesTakeTurnsWhereTheCutsAllowIt) {
  const auto schedules = [](const std::vector<std::string>& overrides) {
    const auto candidates = CandidatesFor(With(overrides), Trying({}));
    EXPECT_TRUE(candidates.ok()) << candidates.status();
    EXPECT_TRUE(candidates->left_out.empty());
    std::set<std::string> names;
    for (const Candidate& one : candidates->all) {
      names.insert(one.experiment.pipeline().schedule());
    }
    return names;
  };
  EXPECT_EQ(schedules({}).count("interleaved"), 0u);
  EXPECT_EQ(schedules({"pipeline.stages=1"}).count("interleaved"), 0u);
  EXPECT_EQ(schedules({"pipeline.stages=2"}).size(), thinwire::AllOf<ScheduleKind>().size() - 1);
  ChoiceOptions options;
  options.schedules = {{ScheduleKind::kInterleaved}};
  EXPECT_THAT(ErrorOf(options), HasSubstr("stages is 4, but 3 cuts make 4 segments"));
}

TEST(CandidatesTest, ACodecThatIsNoneIsRefusedWithTheNearest) {
  EXPECT_THAT(ErrorOf(Trying({"topq(ratio=0.1)"})),
              AllOf(StartsWith("--codec: "), HasSubstr("nearest is \"topk\"")));
  EXPECT_THAT(ErrorOf(Trying({"topk(ratio=2)"})), StartsWith("--codec: "));
}

TEST(CandidatesTest, WhatCannotBeIsLeftOutWithAReason) {
  // Halving its budget needs two entries of a message; a sample after layer3 has 256.
  const Experiment experiment =
      With({"compression.gradients={codec: topk, ratio: 0.003, scope: tensor, feedback: "
            "ef_mixed_b}"});
  const auto candidates = CandidatesFor(experiment, Trying({}, {4, 64}));
  ASSERT_TRUE(candidates.ok()) << candidates.status();
  ASSERT_EQ(candidates->left_out.size(), 3u);  // with gpipe, 1f1b and zero_bubble
  EXPECT_THAT(candidates->left_out[0],
              StartsWith("left out: the file's in 64 microbatches, gpipe: compression.gradients"));
  EXPECT_THAT(CodecsIn(*candidates), UnorderedElementsAre("the file's", "none"));
  EXPECT_THAT(std::string(CandidatesFor(experiment, Trying({}, {64})).status().message()),
              StartsWith("compression: compression.gradients"));
}

std::vector<ChoiceEstimate> RankedAt(double bits_per_second, const Experiment& experiment,
                                     const ChoiceOptions& options) {
  PlanAssumptions assumptions;
  assumptions.bits_per_second = {bits_per_second};
  Speeds speeds;
  speeds.blocks = *BlocksAt(PartitionFrom(experiment)->model, /*gflops=*/10);
  speeds.others = *CodingAt(/*gigabytes_per_second=*/1);
  const auto candidates = CandidatesFor(experiment, options);
  EXPECT_TRUE(candidates.ok()) << candidates.status();
  const auto choices = RankedChoices(candidates->all, assumptions, speeds);
  EXPECT_TRUE(choices.ok()) << choices.status();
  return *choices;
}

TEST(RankedChoicesTest, OnASlowLinkTheSmallestWinsAndOnAFastOneNoneIsBest) {
  const std::vector<std::string> codecs = {"uniform(bits=2)", "fp16"};
  const std::vector<ChoiceEstimate> slow = RankedAt(1e6, With(), Trying(codecs));
  EXPECT_EQ(slow.front().codec(), "uniform(bits=2)");
  EXPECT_EQ(slow.back().codec(), "none");
  for (size_t i = 1; i < slow.size(); ++i) {
    EXPECT_LE(slow[i - 1].step_seconds(), slow[i].step_seconds());
  }
  EXPECT_EQ(RankedAt(1e12, With(), Trying(codecs)).front().codec(), "none");
}

TEST(RankedChoicesTest, ARowIsThePlanOfThatExperiment) {
  const Experiment experiment = With();
  PlanAssumptions assumptions;
  assumptions.bits_per_second = {20e6};
  Speeds speeds;
  speeds.blocks = *BlocksAt(PartitionFrom(experiment)->model, 10);
  speeds.others = *CodingAt(1);
  const Plan plan = *MakePlan(experiment, assumptions, speeds);
  for (const ChoiceEstimate& choice : RankedAt(20e6, experiment, Trying({}))) {
    if (!choice.own()) continue;
    EXPECT_EQ(choice.step_seconds(), plan.steps[0].seconds());
    EXPECT_DOUBLE_EQ(choice.samples_per_second(), 64 / plan.steps[0].seconds());
    EXPECT_EQ(choice.bubble_ratio(), plan.steps[0].bubble_ratio());
    int64_t wire_bytes = 0;
    for (const PlannedBoundary& boundary : plan.boundaries) {
      wire_bytes += boundary.activations.wire_bytes + boundary.gradients.wire_bytes;
    }
    EXPECT_EQ(choice.wire_bytes(), wire_bytes);
    EXPECT_GE(choice.memory_bytes(), plan.stages[0].memory_bytes);
    return;
  }
  FAIL() << "the experiment itself is not there";
}

TEST(RankedChoicesTest, OtherMicrobatchesLearnOtherwiseWithBatchNormOnly) {
  for (const ChoiceEstimate& choice : RankedAt(20e6, With(), Trying({}))) {
    EXPECT_EQ(choice.learns_otherwise(), choice.microbatches() != 4);
  }
  // The experiment's own number need not be among those tried.
  for (const ChoiceEstimate& choice : RankedAt(20e6, With(), Trying({}, {2, 8}))) {
    EXPECT_TRUE(choice.learns_otherwise());
  }
  const Experiment tokens = *ParseExperiment(R"(
model: {name: gpt2, layers: 2, heads: 2, width: 16}
data: {name: shakespeare, context: 16, batch_size: 8}
pipeline: {cuts: [h.0, h.1], microbatches: 2}
optimizer: {lr: 0.01}
epochs: 2
)",
                                             "test", {});
  for (const ChoiceEstimate& choice :
       RankedAt(20e6, tokens, Trying({"topk(ratio=0.1, scope=token)"}))) {
    EXPECT_FALSE(choice.learns_otherwise());
  }
}

TEST(FormatChoicesTest, FitsEightyColumnsAndMarksTheExperimentAndItsLearning) {
  const std::vector<ChoiceEstimate> choices =
      RankedAt(20e6, With(), Trying({"uniform(bits=4) | topk(ratio=0.1, scope=sample)"}));
  const std::string text = FormatChoices(choices, {"left out: this and that"});
  std::istringstream lines(text);
  int own = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    own += line.rfind("> ", 0) == 0;
  }
  EXPECT_EQ(own, 1);
  EXPECT_THAT(text, HasSubstr("> is the experiment as it stands"));
  EXPECT_THAT(text, HasSubstr("* Batch norm"));
  EXPECT_THAT(text, HasSubstr("left out: this and that\n"));
}

}  // namespace
}  // namespace thinwire
