#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/resolve.h"
#include "config/resolve_testing.h"
#include "google/protobuf/util/message_differencer.h"

namespace thinwire {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ResolveCompressionTest, ACutsOwnEntryLeavesTheRestToTheGeneralOne) {
  const Experiment e = With({"pipeline.cuts=[layer1, layer2]",
                             "compression.gradients={codec: topk, ratio: 0.1, values: fp16}",
                             "compression.boundaries.layer1.gradients.ratio=0.2",
                             "compression.boundaries.layer2.gradients.k=5"});
  const DirectionConfig& first = e.compression().boundaries().at("layer1").gradients();
  EXPECT_EQ(first.codec(), "topk");
  EXPECT_EQ(first.ratio(), 0.2);
  EXPECT_EQ(first.values(), "fp16");
  const DirectionConfig& second = e.compression().boundaries().at("layer2").gradients();
  EXPECT_EQ(second.k(), 5u);
  EXPECT_FALSE(second.has_ratio());
  EXPECT_FALSE(e.compression().boundaries().at("layer1").has_activations());
}

TEST(ResolveCompressionTest, ACutsOwnCodecDropsTheGeneralOnesFields) {
  const Experiment e =
      With({"pipeline.cuts=[layer1]", "compression.gradients={codec: topk, ratio: 0.1}",
            "compression.boundaries.layer1.gradients={codec: uniform, bits: 4}"});
  const DirectionConfig& own = e.compression().boundaries().at("layer1").gradients();
  EXPECT_FALSE(own.has_ratio());
  EXPECT_EQ(own.scope(), "tensor");
  EXPECT_EQ(own.bits(), 4u);
}

TEST(ResolveCompressionTest, AFieldWithoutASayIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"{codec: uniform, bits: 4, group: 64}", "group: 64, want scope group with it"},
      {"{codec: uniform, rotation_block: 64}",
       "rotation_block: 64, want rotation hadamard with it"},
      {"{codec: ecsq, rate: 2, step: 1}", "step: 1, want no rate with it"},
      {"{codec: uniform, range: max_abs, zero: on_grid}", "zero: on_grid, want range min_max with"},
      {"{codec: topk, ratio: 0.1, values: uniform, range: max_abs, zero: on_grid}",
       "zero: on_grid, want range min_max with it"},
      {"{codec: topk, ratio: 0.1, zero: free}", "zero: free, want values uniform with it"},
      {"{codec: randomk, ratio: 0.1, group: 64}",
       "group: 64, want values uniform or means with it"},
      {"{codec: topk, ratio: 0.1, group: 64}",
       "group: 64, want scope group, or values uniform or means with it"},
      {"{codec: topk, ratio: 0.1, values: means, rounding: nearest}",
       "rounding: nearest, want values uniform with it"},
      {"{codec: topk, indices: shared, ratio: 0.5}", "ratio: 0.5, want indices own with it"},
      {"{codec: topk, indices: shared, k: 5}", "k: 5, want indices own with it"},
      {"{codec: topk, indices: shared, scope: tensor}", "scope: tensor, want indices own with it"},
      {"{codec: topk, indices: shared, pad: exact_k}", "pad: exact_k, want indices own with it"},
      {"{codec: topk, indices: shared, support: received_nonzero}",
       "support: received_nonzero, want indices own with it"},
  };
  for (const auto& [gradients, message] : cases) {
    EXPECT_THAT(ErrorWith({"compression.activations={codec: topk, ratio: 0.1}",
                           absl::StrCat("compression.gradients=", gradients)}),
                HasSubstr(absl::StrCat(": compression.gradients.", message)))
        << gradients;
  }
  With({"compression.gradients={codec: uniform, range: max_abs, zero: free}"});
}

TEST(ResolveCompressionTest, ACutsOwnEntryDropsWhatItSilences) {
  const std::string cuts = "pipeline.cuts=[layer1]";
  const std::string activations = "compression.activations={codec: topk, ratio: 0.1}";
  const auto own = [&](const std::string& general, const std::string& own) {
    const Experiment e = With({cuts, activations, absl::StrCat("compression.gradients=", general),
                               absl::StrCat("compression.boundaries.layer1.gradients=", own)});
    const auto& boundaries = e.compression().boundaries();
    return boundaries.empty() ? DirectionConfig() : boundaries.at("layer1").gradients();
  };
  const DirectionConfig shared =
      own("{codec: topk, ratio: 0.2, support: received_nonzero, level: {by_epoch: {2: 0.1}}}",
          "{indices: shared}");
  EXPECT_FALSE(shared.has_ratio() || shared.has_scope() || shared.has_count() || shared.has_pad() ||
               shared.has_support() || shared.has_level());
  EXPECT_EQ(own("{codec: uniform, scope: group, group: 64}", "{scope: tensor}").group(), 0u);
  EXPECT_EQ(own("{codec: uniform, zero: on_grid}", "{range: max_abs}").zero(), "free");
  EXPECT_THAT(ErrorWith({cuts, activations, "compression.gradients={codec: topk, ratio: 0.2}",
                         "compression.boundaries.layer1.gradients={indices: shared, ratio: 0.3}"}),
              HasSubstr("boundaries.layer1.gradients.ratio: 0.3, want indices own with it"));
}

TEST(ResolveCompressionTest, SharedIndicesNeedAMaskOnTheActivations) {
  const std::string shared = "compression.gradients={codec: topk, indices: shared}";
  for (const char* feedback : {"none", "ef", "lazy"}) {
    With({shared, absl::StrCat("compression.activations={codec: topk, ratio: 0.1, feedback: ",
                               feedback, "}")});
  }
  EXPECT_THAT(
      ErrorWith({shared}),
      AllOf(HasSubstr("compression.gradients.indices: shared with activations of codec none"),
            HasSubstr("at cut layer1.0, want topk with feedback none or ef")));
  for (const char* feedback : {"ef21", "aq_sgd", "ef_mixed_b"}) {
    EXPECT_THAT(
        ErrorWith(
            {shared, absl::StrCat("compression.activations={codec: topk, ratio: 0.1, feedback: ",
                                  feedback, "}")}),
        HasSubstr(absl::StrCat("and feedback ", feedback)));
  }
  // One cut's own activations are enough to make it invalid.
  EXPECT_THAT(ErrorWith({shared, "compression.activations={codec: topk, ratio: 0.1}",
                         "compression.boundaries.layer2.0.activations.codec=fp16"}),
              HasSubstr("cut layer2.0"));
}

TEST(ResolveCompressionTest, StateByBatchNeedsBatchesThatComeBack) {
  const std::string by_batch =
      "compression.gradients={codec: topk, ratio: 0.1, feedback: {kind: ef, key: batch}}";
  EXPECT_THAT(ErrorWith({by_batch}),
              AllOf(HasSubstr("gradients.feedback.key: batch with data.shuffle samples"),
                    HasSubstr("want batches")));
  EXPECT_EQ(With({by_batch, "data.shuffle=batches"}).data().shuffle(), "batches");
  EXPECT_THAT(ErrorWith({"data.shuffle=batch"}), HasSubstr("data.shuffle"));
}

TEST(ResolveCompressionTest, ARankThatTheSmallestMessageDoesNotHaveIsRefused) {
  // A sample of the message after layer1 is [8, 8, 16].
  const std::string rank = "compression.gradients={codec: low_rank, rank: ";
  EXPECT_EQ(With({"pipeline.cuts=[layer1.0]", rank + "15}"}).pipeline().cuts_size(), 1);
  EXPECT_THAT(ErrorWith({"pipeline.cuts=[layer1.0]", rank + "16}"}),
              AllOf(HasSubstr("compression.gradients: low_rank: rank 16"),
                    HasSubstr("a matrix of 1472 x 16, want less than both")));
}

// A sample is one vector, so a message of few samples allows only a low rank.
constexpr char kVectors[] = R"(
model:
  name: custom
  blocks:
    - {name: flat, layers: [{kind: flatten}]}
    - {name: head, layers: [{kind: linear, name: fc, out: 10}]}
data: {name: digits, limit: 206, test_limit: 105}
pipeline: {cuts: [flat]}
optimizer: {lr: 0.1}
epochs: 1
)";

TEST(ResolveCompressionTest, OutliersOfAllChannelsAndFirstPositionsOfImagesAreRefused) {
  // A sample of the message after layer1 is [8, 8, 16].
  const std::string uniform = "compression.activations={codec: uniform, ";
  With({"pipeline.cuts=[layer1.0]", uniform + "outliers: 15}"});
  EXPECT_THAT(ErrorWith({"pipeline.cuts=[layer1.0]", uniform + "outliers: 16}"}),
              HasSubstr("compression.activations: outliers is 16 of 16 channels, want fewer"));
  EXPECT_THAT(ErrorWith({"pipeline.cuts=[layer1.0]", uniform + "first_position: exact}"}),
              AllOf(HasSubstr("compression.activations: first_position is exact of messages ["),
                    HasSubstr("want sequences, [samples, positions, features]")));
  EXPECT_THAT(ErrorWith({uniform + "first_position: exakt}"}), HasSubstr("exact"));
  EXPECT_THAT(ErrorWith({"compression.activations={codec: topk, ratio: 0.1, outliers: 1}"}),
              HasSubstr("outliers"));
  EXPECT_THAT(ErrorWith({"compression.gradients={codec: uniform, outliers: 1, "
                         "support: received_nonzero}"}),
              HasSubstr("outliers with support received_nonzero, want support all"));
}

TEST(ResolveCompressionTest, TheSmallestMessageIsThatOfTheLastBatch) {
  const std::string activations = "compression.activations={codec: low_rank, rank: ";
  const std::string gradients = "compression.gradients={codec: low_rank, rank: ";
  With({gradients + "5}"}, kVectors);
  EXPECT_THAT(ErrorWith({gradients + "6}"}, kVectors), HasSubstr("smallest message [6, 64]"));
  EXPECT_THAT(ErrorWith({gradients + "5}", "pipeline.microbatches=4"}, kVectors),
              HasSubstr("smallest message [1, 64]"));
  EXPECT_THAT(ErrorWith({activations + "5}"}, kVectors), HasSubstr("smallest message [5, 64]"));
  With({activations + "5}", "evaluation.compressed=false"}, kVectors);
  With({activations + "5, feedback: aq_sgd}"}, kVectors);
}

TEST(ResolveCompressionTest, EfMixedBNeedsTwoEntriesOfTheSmallestMessage) {
  // A sample has 64 elements.
  const std::string split = "compression.gradients={codec: topk, feedback: ef_mixed_b, ratio: ";
  With({split + "0.02}"}, kVectors);
  EXPECT_THAT(ErrorWith({split + "0.015}"}, kVectors),
              AllOf(HasSubstr("compression.gradients: ef_mixed_b: codec topk(ratio=0.015"),
                    HasSubstr("keeps 1 of the 64 elements of a scope of [6, 64]")));
  EXPECT_THAT(ErrorWith({split + "0.1, level: {by_epoch: {1: 0.01}}}"}, kVectors),
              HasSubstr("keeps 1 of the 64"));
  With({split + "0.005, scope: tensor}"}, kVectors);  // 2 of 6 * 64
  EXPECT_THAT(ErrorWith({split + "0.005, scope: tensor}", "pipeline.microbatches=2"}, kVectors),
              HasSubstr("keeps 1 of the 192"));
}

TEST(ResolveCompressionTest, EfMixedAActsOnGradients) {
  const std::string a = "{codec: topk, ratio: 0.1, feedback: {kind: ef_mixed_a, decay: ";
  With({absl::StrCat("compression.activations=", a, "1}}"),
        absl::StrCat("compression.gradients=", a, "1}}")});
  With({absl::StrCat("compression.gradients=", a, "1}}")});
  EXPECT_THAT(ErrorWith({absl::StrCat("compression.activations=", a, "7}}"),
                         absl::StrCat("compression.gradients=", a, "1}}")}),
              HasSubstr("compression.activations: feedback: decay is 7"));
  EXPECT_THAT(ErrorWith({absl::StrCat("compression.activations=", a, "1}}")}),
              HasSubstr("compression.activations.feedback.kind: ef_mixed_a with "
                        "gradients.feedback.kind none at cut layer1.0, want ef_mixed_a there"));
}

TEST(ResolveCompressionTest, FeedbackThatCannotWorkIsRefused) {
  EXPECT_THAT(ErrorWith({"compression.gradients={codec: uniform, feedback: ef_mixed_b}"}),
              AllOf(HasSubstr("compression.gradients"), HasSubstr("cannot be halved")));
  EXPECT_THAT(
      ErrorWith(
          {"compression.gradients={codec: randomk, ratio: 0.1, unbiased: true, feedback: ef}"}),
      HasSubstr("contraction"));
  With({"compression.gradients={codec: randomk, ratio: 0.9, unbiased: true, feedback: ef}"});
  EXPECT_THAT(ErrorWith({"compression.gradients={codec: randomk, ratio: 0.9, unbiased: true, "
                         "feedback: ef, level: {by_epoch: {2: 0.4}}}"}),
              HasSubstr("its contraction is -0.5, want more than 0"));
  EXPECT_THAT(ErrorWith({"compression.gradients={codec: topk, ratio: 0.1, support: "
                         "received_nonzero, feedback: ef}"}),
              HasSubstr("outside the support"));
}

TEST(ResolveCompressionTest, ARateIsANumberOfBits) {
  for (const char* rate : {"1.5", "{bits: 1.5}"}) {
    const Experiment e =
        With({absl::StrCat("compression.activations={codec: ecsq, rate: ", rate, "}")});
    EXPECT_EQ(e.compression().activations().rate().bits(), 1.5);
    EXPECT_FALSE(e.compression().activations().has_step());
    EXPECT_EQ(ToYaml(*ParseExperiment(ToYaml(e), "again.yaml", {})), ToYaml(e));
  }
  EXPECT_THAT(ErrorWith({"compression.activations={codec: ecsq, rate: 99}"}),
              HasSubstr("rate is 99, want 0.03125 to 16 bits per element"));
  EXPECT_THAT(ErrorWith({"compression.activations={codec: uniform, rate: 2}"}),
              HasSubstr("rate: does not belong to codec uniform"));
}

TEST(ResolveCompressionTest, Levels) {
  const auto level = [](const std::string& codec, const std::string& level) {
    return std::vector<std::string>{
        absl::StrCat("compression.activations={", codec, ", level: {", level, "}}")};
  };
  const Experiment e = With(level("codec: topk, ratio: 0.5", "by_epoch: {\"2\": 0.1, 3: 0.05}"));
  EXPECT_EQ(e.compression().activations().level().by_epoch().at("2"), 0.1);
  EXPECT_EQ(ToYaml(*ParseExperiment(ToYaml(e), "again.yaml", {})), ToYaml(e));
  With(level("codec: uniform", "target_error: 0.1, min: 2, max: 8"));
  With(level("codec: ecsq, rate: 2", "by_epoch: {2: 0.5}"));
  With(level("codec: ecsq, rate: 2", "target_error: 0.1, min: 0.5, max: 8"));
  EXPECT_THAT(ErrorWith(level("codec: ecsq", "by_epoch: {2: 0.5}")), HasSubstr("ecsq with a rate"));
  EXPECT_THAT(ErrorWith(level("codec: ecsq, rate: 2", "by_epoch: {2: 99}")),
              HasSubstr("level.by_epoch: ecsq: rate is 99"));
  EXPECT_THAT(ErrorWith(level("codec: fp16", "by_epoch: {2: 0.1}")),
              HasSubstr("level: does not belong to codec fp16"));
  EXPECT_THAT(ErrorWith(level("codec: topk, k: 3", "by_epoch: {2: 0.1}")),
              HasSubstr("with a ratio"));
  EXPECT_THAT(ErrorWith(level("codec: topk, ratio: 0.5", "by_epoch: {two: 0.1}")),
              HasSubstr("key two, want an epoch"));
  EXPECT_THAT(ErrorWith(level("codec: topk, ratio: 0.5", "by_epoch: {2: 0.1, 9: 0.05}")),
              HasSubstr("level.by_epoch: epoch 9 of level 0.05, the run has 3"));
  EXPECT_THAT(ErrorWith(level("codec: uniform", "by_epoch: {2: 2.5}")), HasSubstr("whole bits"));
  EXPECT_THAT(ErrorWith(level("codec: uniform", "target_error: 0.1")),
              HasSubstr("target_error, min and max together"));
  EXPECT_THAT(
      ErrorWith(level("codec: uniform", "target_error: 0.1, min: 2, max: 8, by_epoch: {2: 4}")),
      HasSubstr("one way of choosing"));
  std::vector<std::string> unmeasured =
      level("codec: uniform", "target_error: 0.1, min: 2, max: 8");
  unmeasured.push_back("metrics.error_every=0");
  EXPECT_THAT(ErrorWith(unmeasured), HasSubstr("metrics.error_every 0"));
}

constexpr char kTied[] = R"(
model: {name: gpt2, layers: 2, heads: 2, width: 16}
data: {name: shakespeare, context: 16}
pipeline: {cuts: [h.0]}
compression:
  activations: {codec: topk, ratio: 0.1, feedback: ef}
  gradients: {codec: uniform, bits: 4}
optimizer: {lr: 0.1}
epochs: 3
)";

TEST(TiedCutTest, GoesExactUnlessItSaysOtherwise) {
  const Experiment e = With({}, kTied);
  const BoundaryConfig& tied = e.compression().boundaries().at("tied");
  EXPECT_EQ(tied.activations().codec(), "none");
  EXPECT_EQ(tied.activations().feedback().kind(), "none");
  EXPECT_EQ(tied.gradients().codec(), "none");
  const Experiment own = With({"compression.boundaries.tied.gradients.codec=uniform"}, kTied);
  EXPECT_EQ(own.compression().boundaries().at("tied").gradients().bits(), 8u);  // not the general 4
  EXPECT_EQ(own.compression().boundaries().at("tied").activations().codec(), "none");
  Experiment again = own;
  ASSERT_TRUE(Resolve(&again).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(own, again));
}

TEST(ResolveCompressionTest, GradientsThroughEcsqAreUnbiasedUnlessTheExperimentSaysOtherwise) {
  const auto rounding = [](const std::string& more) {
    const Experiment e = With({"compression.activations={codec: ecsq}",
                               "compression.gradients={codec: ecsq" + more + "}"});
    EXPECT_EQ(e.compression().activations().rounding(), "nearest");
    return e.compression().gradients().rounding();
  };
  EXPECT_EQ(rounding(""), "dither");
  EXPECT_EQ(rounding(", rate: 1.5, support: received_nonzero"), "dither");
  EXPECT_EQ(rounding(", rounding: nearest"), "nearest");
  EXPECT_EQ(rounding(", reconstruction: center"), "nearest");
  EXPECT_EQ(rounding(", feedback: ef21"), "nearest");
  EXPECT_EQ(With({"compression.gradients={codec: uniform}"}).compression().gradients().rounding(),
            "nearest");
}

TEST(ScopeOfTokensTest, IsATokenUnlessTheExperimentSaysOtherwise) {
  const Experiment e =
      With({"pipeline.cuts=[embedding, h.0]",
            "compression.boundaries.h.0.activations={codec: uniform, scope: tensor}",
            "compression.boundaries.h.0.gradients.bits=2",
            "compression.boundaries.tied.gradients.codec=uniform"},
           kTied);
  EXPECT_EQ(e.compression().activations().scope(), "token");
  EXPECT_EQ(e.compression().gradients().scope(), "token");
  EXPECT_EQ(e.compression().boundaries().at("h.0").activations().scope(), "tensor");
  EXPECT_EQ(e.compression().boundaries().at("h.0").gradients().scope(), "token");
  EXPECT_EQ(e.compression().boundaries().at("tied").gradients().scope(), "tensor");
  Experiment again = e;
  ASSERT_TRUE(Resolve(&again).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(e, again));
}

TEST(ScopeOfTokensTest, IsOfCodecsThatHaveOne) {
  const auto scope = [](const std::string& gradients) {
    const Experiment e = With({"compression.gradients={" + gradients + "}"}, kTied);
    return e.compression().gradients().scope();
  };
  EXPECT_EQ(scope("codec: randomk, k: 3"), "token");
  EXPECT_EQ(scope("codec: topk, ratio: 0.1, support: received_nonzero"), "token");
  EXPECT_EQ(scope("codec: uniform, support: received_nonzero"), "tensor");
  EXPECT_EQ(scope("codec: topk, indices: shared"), "");
  EXPECT_EQ(scope("codec: fp16"), "");
}

TEST(TiedCutTest, IsThereWhereCutsPartTheCopies) {
  for (const char* none : {"model.tied=false", "pipeline.cuts=[]"}) {
    EXPECT_EQ(With({none}, kTied).compression().boundaries().count("tied"), 0u) << none;
  }
  EXPECT_THAT(
      ErrorWith({"model.tied=false", "compression.boundaries.tied.gradients.codec=fp16"}, kTied),
      HasSubstr("compression.boundaries.tied: unknown cut \"tied\""));
}

TEST(TiedCutTest, WhatIsForMicrobatchesOfSamplesIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"activations={codec: uniform, feedback: aq_sgd}",
       "activations.feedback.key: sample, want slot or stream: what crosses there is a weight's"},
      {"gradients={codec: topk, indices: shared}", "gradients.indices: shared, want own"},
      {"gradients={codec: topk, ratio: 0.1, support: received_nonzero}",
       "gradients.support: received_nonzero, want all"},
      {"gradients={codec: fp16, epilogue_only: true}", "gradients.epilogue_only: true, want false"},
      {"bottleneck={kind: linear, width: 4}", "bottleneck.kind: linear, want no bottleneck"},
      {"gradients={codec: low_rank, rank: 16}", "gradients: low_rank: rank 16"},
      {"gradients={codec: uniform, first_position: exact}", "gradients: first_position is exact"},
  };
  for (const auto& [assignment, message] : cases) {
    EXPECT_THAT(ErrorWith({absl::StrCat("compression.boundaries.tied.", assignment)}, kTied),
                HasSubstr(absl::StrCat("compression.boundaries.tied.", message)))
        << assignment;
  }
}

}  // namespace
}  // namespace thinwire
