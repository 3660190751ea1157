#include "coordinator/plan/warnings.h"

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kExperiment[] = R"(
model: {name: resnet8}
data: {name: digits}
pipeline: {cuts: [layer1]}
optimizer: {lr: 0.1}
epochs: 2
)";

std::vector<std::string> WarningsWith(const std::vector<std::string>& overrides) {
  const auto experiment = ParseExperiment(kExperiment, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  const auto warnings = PlanWarnings(*experiment);
  EXPECT_TRUE(warnings.ok()) << warnings.status();
  return *warnings;
}

std::vector<std::string> WarningsOf(const std::string& gradients) {
  return WarningsWith({absl::StrCat("compression.gradients={", gradients, "}")});
}

TEST(PlanWarningsTest, TellCutDirectionCodecAndTheMeasuredContraction) {
  EXPECT_THAT(WarningsOf("codec: uniform, bits: 1, feedback: ef"),
              ElementsAre(AllOf(StartsWith("warning: layer1, gradients: codec uniform(bits=1, "),
                                HasSubstr(") with ef: contraction -"),
                                EndsWith(", want more than 0; its state may grow"))));
}

TEST(PlanWarningsTest, TellOfLinesThatWereSkipped) {
  const std::string data =
      "data={name: jsonl, file: a, tokens: bytes, on_error: skip, context: 8, ";
  const std::string corpus = "corpus: {vocabulary: 256, train_samples: 400, test_samples: 9";
  const std::string model = "model={name: gpt2, layers: 4, width: 16, heads: 2}";
  const std::string cuts = "pipeline.cuts=[h.0]";
  EXPECT_THAT(WarningsWith({model, cuts, data + corpus + "}}"}), IsEmpty());
  EXPECT_THAT(
      WarningsWith(
          {model, cuts, data + corpus + ", skipped_lines: 3, first_skipped: 'a:17: is a text'}}"}),
      ElementsAre("warning: data: 3 lines were skipped (data.on_error), the first is "
                  "a:17: is a text"));
}

TEST(PlanWarningsTest, AreOfCodecsThatExpandUnderFeedbackOnly) {
  for (const char* gradients :
       {"codec: none", "codec: uniform, bits: 1", "codec: uniform, bits: 4, feedback: ef",
        "codec: topk, ratio: 0.01, feedback: ef21", "codec: topk, ratio: 0.1, feedback: ef_mixed_b",
        "codec: randomk, ratio: 0.1, feedback: lazy", "codec: fp8, feedback: ef",
        "codec: low_rank, rank: 15, feedback: ef",
        "codec: threshold, threshold: 9, feedback: ef"}) {
    EXPECT_THAT(WarningsOf(gradients), IsEmpty()) << gradients;
  }
}

TEST(PlanWarningsTest, AreNotOfTextThatAnEncoderCannotGenerate) {
  const std::vector<std::string> overrides = {
      "model={name: bert, layers: 2, heads: 2, width: 16}",
      "data={name: shakespeare, tokens: word_piece, objective: masked, context: 16, "
      "corpus: {vocabulary: 65, train_tokens: 999, test_tokens: 999}}",
      "pipeline.cuts=[layer.0]",
      "compression.activations={codec: topk, ratio: 0.1, scope: sample}"};
  EXPECT_THAT(WarningsWith(overrides), IsEmpty());
  EXPECT_THAT(*CausalityOf(*ParseExperiment(kExperiment, "test", overrides)), IsEmpty());
}

TEST(PlanWarningsTest, TellWhereActivationsOfTokensAreNotCausal) {
  const auto with = [](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = {"model={name: gpt2, layers: 4, heads: 2, width: 16}",
                                          "data={name: shakespeare, context: 16}",
                                          "pipeline.cuts=[h.0, h.1, h.2]",
                                          "compression.activations={codec: topk, ratio: 0.1}",
                                          "compression.gradients={codec: uniform, scope: tensor}"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return overrides;
  };
  EXPECT_THAT(WarningsWith(with({})), IsEmpty());
  const std::string sample = "compression.activations.scope=sample";
  EXPECT_THAT(WarningsWith(with({sample, "compression.boundaries.h.1.activations.scope=token"})),
              ElementsAre(StartsWith("warning: h.0, h.2, activations: codec topk(ratio=0.1, "
                                     "scope=sample, values=fp32) is not causal: ")));
  EXPECT_THAT(WarningsWith(with({sample, "compression.boundaries.h.1.activations.scope=tensor"})),
              ElementsAre(StartsWith("warning: h.0, h.2, "), StartsWith("warning: h.1, ")));
  EXPECT_THAT(WarningsWith({"compression.activations={codec: topk, ratio: 0.1}"}), IsEmpty())
      << "images have no tokens";
}

TEST(PlanWarningsTest, TellOfPretrainedTokensThatShareARange) {
  const auto warnings = [](const std::string& activations, const char* init) {
    auto experiment = ParseExperiment(
        kExperiment, "test",
        {"model={name: gpt2, layers: 4, heads: 2, width: 16}",
         "data={name: shakespeare, context: 16}", "pipeline.cuts=[h.0]",
         absl::StrCat("compression.activations={codec: uniform, bits: 4", activations, "}")});
    EXPECT_TRUE(experiment.ok()) << experiment.status();
    experiment->set_init(init);
    return *PlanWarnings(*experiment);
  };
  EXPECT_THAT(warnings(", scope: tensor", "models/pretrained"),
              Contains(AllOf(StartsWith("warning: h.0, activations: codec uniform(bits=4, "),
                             HasSubstr("has scope tensor with `init`"))));
  EXPECT_THAT(warnings(", scope: tensor", ""), Not(Contains(HasSubstr("with `init`"))));
  EXPECT_THAT(warnings(", scope: tensor, outliers: 2", "models/pretrained"),
              Not(Contains(HasSubstr("with `init`"))));
  EXPECT_THAT(warnings("", "models/pretrained"), IsEmpty()) << "scope token";
}

TEST(PlanWarningsTest, TellOfRatesThatMessagesTakeAnyway) {
  EXPECT_THAT(WarningsOf("codec: ecsq, rate: 1.5"), IsEmpty());
  EXPECT_THAT(WarningsOf("codec: ecsq, rate: 0.5, scope: token"),
              ElementsAre(AllOf(StartsWith("warning: layer1, gradients: codec ecsq(rate=0.5, "),
                                HasSubstr(": rate 0.5, but a message of "),
                                HasSubstr(" bits per element and more"))));
  EXPECT_THAT(WarningsOf("codec: ecsq, rate: 2, scope: token, level: {by_epoch: {2: 0.5}}"),
              ElementsAre(HasSubstr("rate 0.5, but")))
      << "the lowest";
  EXPECT_THAT(WarningsOf("codec: ecsq, step: 2, scope: token"), IsEmpty());
}

TEST(PlanWarningsTest, TellOfARateThatTheLastBatchCannotHave) {
  const std::vector<std::string> overrides = {"compression.gradients={codec: ecsq, rate: 0.5}",
                                              "data.limit=33", "data.batch_size=32"};
  EXPECT_THAT(
      WarningsWith(overrides),
      ElementsAre(AllOf(HasSubstr("rate 0.5, but a message of [1, "), HasSubstr("] takes 1."))));
}

TEST(PlanWarningsTest, ALevelIsMeasuredAtItsLowest) {
  EXPECT_THAT(WarningsOf("codec: uniform, feedback: ef21, level: {by_epoch: {1: 1, 2: 8}}"),
              ElementsAre(HasSubstr("codec uniform(bits=1, ")));
  EXPECT_THAT(
      WarningsOf("codec: uniform, feedback: ef, level: {target_error: 0.1, min: 1, max: 8}"),
      ElementsAre(HasSubstr("codec uniform(bits=1, ")));
}

}  // namespace
}  // namespace thinwire
