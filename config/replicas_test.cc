// Tests the section `replicas` of an experiment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "config/specs.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kExperiment[] = R"(
model: {name: resnet8}
data: {name: digits, batch_size: 40}
pipeline: {cuts: [layer1], microbatches: 4}
replicas: {count: 4, contributions: {codec: ecsq, rate: 2, feedback: ef}}
optimizer: {lr: 0.1}
epochs: 2
)";

Experiment With(const std::vector<std::string>& overrides) {
  const auto experiment = ParseExperiment(kExperiment, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return experiment.ok() ? *experiment : Experiment();
}

std::string ErrorWith(const std::vector<std::string>& overrides) {
  return std::string(ParseExperiment(kExperiment, "test", overrides).status().message());
}

TEST(ReplicasConfigTest, DefaultsAreFilledIn) {
  const Experiment e = With({});
  EXPECT_EQ(e.replicas().exchange(), "reduce");
  EXPECT_EQ(e.replicas().contributions().rate().bits(), 2);
  EXPECT_EQ(e.replicas().contributions().feedback().key(), "slot");
  EXPECT_EQ(e.replicas().average().codec(), "none");
  EXPECT_EQ(e.replicas().digest_every(), 100u);
  const ReplicasSpec spec = *ReplicasFrom(e);
  EXPECT_EQ(spec.digest_every, 100);
  EXPECT_EQ(spec.count, 4);
  EXPECT_EQ(spec.exchange, ReplicaExchange::kReduce);
  EXPECT_EQ(spec.contributions.codec.kind, CodecKind::kEcsq);
  // Without feedback gradients through ecsq are unbiased.
  EXPECT_EQ(With({"replicas.contributions.feedback=none"}).replicas().contributions().rounding(),
            "dither");
}

// With exchange reduce its factors are added up.
TEST(ReplicasConfigTest, LowRankWantsErrorsAtTheSenderAndItsFactorsAsTheyAre) {
  const auto refusal = [](const std::string& more) {
    return ErrorWith({"replicas.contributions={codec: low_rank, rank: 2, " + more + "}"});
  };
  EXPECT_EQ(refusal("feedback: {kind: ef, decay: 0.9}"), "");
  EXPECT_THAT(refusal("feedback: ef21"),
              HasSubstr("replicas.contributions.feedback: ef21, want none or ef: with "
                        "replicas.exchange reduce, low_rank's factors are added up"));
  EXPECT_THAT(refusal("feedback: none, on_nonfinite: pass"),
              HasSubstr("replicas.contributions.on_nonfinite: pass, want error: with"));
  EXPECT_THAT(refusal("feedback: ef, lossless: zstd"),
              HasSubstr("replicas.contributions.lossless: zstd, want none: with"));
  EXPECT_THAT(refusal("feedback: ef, per_sample: true"), HasSubstr("want less than both"));
  EXPECT_THAT(ErrorWith({"replicas.stages={head: {contributions: {codec: low_rank, rank: 2, "
                         "feedback: ef21}}}"}),
              HasSubstr("replicas.stages.head.contributions.feedback: ef21, want none or ef"));
  EXPECT_EQ(ErrorWith({"replicas={exchange: gather, contributions: {codec: low_rank, rank: 2, "
                       "lossless: zstd, feedback: ef21, on_nonfinite: pass}}"}),
            "");
  // A sum takes as many bytes as a contribution, so that two replicas gain nothing from gathering.
  EXPECT_EQ(With({"replicas={count: 2, exchange: auto, contributions: {codec: low_rank, rank: 2}}"})
                .replicas()
                .exchange(),
            "reduce");
}

TEST(ReplicasConfigTest, AutoTakesTheExchangeThatSendsFewerBytes) {
  const auto chosen = [](const std::string& replicas) {
    return With({"replicas={exchange: auto, " + replicas + "}"}).replicas();
  };
  // Four times 2 bits are less than 2 and 32, and more than 2 and 4.
  EXPECT_EQ(chosen("average: {codec: none}").exchange(), "gather");
  EXPECT_FALSE(chosen("average: {codec: none}").has_average());
  EXPECT_EQ(chosen("average: {codec: uniform, bits: 4}").exchange(), "reduce");
  EXPECT_EQ(chosen("count: 2, average: {codec: uniform, bits: 4}").exchange(), "gather");
  EXPECT_EQ(chosen("contributions: {codec: none, feedback: none}").exchange(), "reduce");
  EXPECT_THAT(ErrorWith({"replicas.exchange=ring"}),
              HasSubstr("replicas.exchange: unknown exchange"));
}

TEST(ReplicasConfigTest, LocalStepsHaveAnOuterOptimizer) {
  EXPECT_EQ(With({}).replicas().sync(), "step");
  EXPECT_FALSE(With({}).replicas().has_outer());
  const Experiment e = With({"replicas.sync=local", "replicas.every=16"});
  const ReplicasSpec spec = *ReplicasFrom(e);
  EXPECT_TRUE(spec.trains_locally());
  EXPECT_EQ(spec.every, 16);
  EXPECT_EQ(spec.outer.kind, OuterKind::kNesterov);
  EXPECT_EQ(spec.outer.lr, 0.7);
  EXPECT_EQ(spec.outer.momentum, 0.9);
  EXPECT_EQ(spec.fragments, 1);
  EXPECT_EQ(spec.mix, 0);
  EXPECT_EQ(With({"replicas={sync: local, every: 16, overlap: 2}"}).replicas().mix(), 0.5);
  // Another choice starts from its own defaults, in a resolved file, too.
  const std::string file = ToYaml(e);
  const auto sgd = ParseExperiment(file, "test", {"replicas.outer.name=sgd"});
  ASSERT_TRUE(sgd.ok()) << sgd.status();
  EXPECT_EQ(sgd->replicas().outer().lr(), 1);
  EXPECT_EQ(sgd->replicas().outer().momentum(), 0);
  const auto step = ParseExperiment(file, "test", {"replicas.sync=step"});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_FALSE(step->replicas().has_every() || step->replicas().has_outer());
}

TEST(ReplicasConfigTest, RefusalsOfLocalStepsNameFieldValueAndWhatIsWanted) {
  const auto local = [](const std::string& override) {
    return ErrorWith({"replicas.sync=local", "replicas.every=4", override});
  };
  EXPECT_THAT(ErrorWith({"replicas.sync=weekly"}), HasSubstr("replicas.sync: unknown sync"));
  EXPECT_THAT(ErrorWith({"replicas.sync=local"}), HasSubstr("replicas.every: is required"));
  EXPECT_THAT(local("replicas.every=0"),
              HasSubstr("replicas.every: 0, want a number of steps, at least 1"));
  EXPECT_THAT(ErrorWith({"replicas.every=4"}),
              HasSubstr("replicas.every: does not belong to sync step"));
  EXPECT_THAT(ErrorWith({"replicas.outer={lr: 1}"}),
              HasSubstr("replicas.outer: does not belong to sync step"));
  EXPECT_THAT(local("replicas.outer.name=adamw"), HasSubstr("replicas.outer.name: unknown name"));
  EXPECT_THAT(local("replicas.outer.lr=-0.5"),
              HasSubstr("replicas.outer.lr: -0.5, want a finite number above 0"));
  EXPECT_THAT(local("replicas.outer.momentum=1"),
              HasSubstr("replicas.outer.momentum: 1, want more than 0 and less than 1"));
  EXPECT_THAT(local("replicas.outer={name: sgd, momentum: -0.1}"),
              HasSubstr("replicas.outer.momentum: -0.1, want at least 0 and less than 1"));
  EXPECT_THAT(local("replicas.average={codec: uniform, feedback: ef}"),
              HasSubstr("replicas.average.feedback: ef, want none"));
  EXPECT_THAT(local("replicas.fragments=5"),
              HasSubstr("replicas.fragments: 5, want 1 to 4, which is replicas.every"));
  EXPECT_THAT(local("replicas.overlap=4"), HasSubstr("replicas.overlap: 4, want less than 4"));
  EXPECT_THAT(local("replicas={fragments: 2, overlap: 2}"),
              HasSubstr("replicas.overlap: 2, want less than 2, which is replicas.every by"));
  EXPECT_THAT(local("replicas.mix=0.5"),
              HasSubstr("replicas.mix: 0.5, want none without replicas.overlap"));
  EXPECT_THAT(ErrorWith({"replicas={sync: local, every: 4, overlap: 1}",
                         "compression.bottleneck={kind: learned_subspace, width: 3}",
                         "model={name: gpt2, width: 16, heads: 2, layers: 2}",
                         "data={name: shakespeare, context: 16}", "pipeline.cuts=[h.0]"}),
              HasSubstr("replicas.overlap: 1, want 0: a mixture of bases"));
  EXPECT_THAT(local("replicas={overlap: 1, mix: 1}"),
              HasSubstr("replicas.mix: 1, want at least 0 and less than 1"));
}

TEST(ReplicasConfigTest, WithoutASectionThereIsOneReplica) {
  EXPECT_EQ(ReplicasFrom(Experiment())->count, 1);
  EXPECT_EQ(ReplicasFrom(With({"replicas.count=1"}))->count, 1);
}

TEST(ReplicasConfigTest, OneReplicaHasItsShareOfTheBatch) {
  const Experiment e = With({"data.batch_size=42"});
  EXPECT_EQ(ReplicasOf(e), 4u);
  EXPECT_EQ(BatchMicrobatchesOf(e), 16u);
  EXPECT_EQ(OfOneReplica(e).data().batch_size(), 11u);
  EXPECT_EQ(ReplicasOf(OfOneReplica(e)), 1u);
  EXPECT_EQ(OfOneReplica(OfOneReplica(e)).data().batch_size(), 11u);
}

TEST(ReplicasConfigTest, AnOverrideReplacesACodec) {
  const Experiment e =
      With({"replicas.contributions.codec=topk", "replicas.contributions.ratio=0.1"});
  EXPECT_EQ(e.replicas().contributions().codec(), "topk");
  EXPECT_FALSE(e.replicas().contributions().has_rate());
  EXPECT_FALSE(With({"replicas.exchange=gather"}).replicas().has_average());
}

TEST(ReplicasConfigTest, AnOverrideLeavesOutWhatItSilences) {
  const Experiment e =
      With({"replicas.contributions={codec: uniform, scope: group, group: 64, feedback: none}"});
  const std::string file = ToYaml(e);
  const auto sample = ParseExperiment(file, "test", {"replicas.contributions.scope=sample"});
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_FALSE(sample->replicas().contributions().has_group());
}

TEST(ReplicasConfigTest, ASegmentHasEntriesOfItsOwnOverTheGeneralOnes) {
  const Experiment e = With({"replicas.average={codec: uniform, bits: 8}",
                             "replicas.stages={layer1: {contributions: {rate: 1}}, "
                             "head: {contributions: {codec: none}, average: {codec: none}}}"});
  const ReplicasSpec spec = *ReplicasFrom(e);
  EXPECT_EQ(spec.ContributionsOf(0).codec.rate, 1);
  EXPECT_EQ(spec.ContributionsOf(0).feedback.kind, FeedbackKind::kEf);
  EXPECT_EQ(spec.AverageOf(0).codec.kind, CodecKind::kUniform);
  EXPECT_EQ(spec.ContributionsOf(1).codec.kind, CodecKind::kNone);
  EXPECT_EQ(spec.ContributionsOf(1).feedback.kind, FeedbackKind::kNone);
  EXPECT_EQ(spec.AverageOf(1).codec.kind, CodecKind::kNone);
  EXPECT_EQ(spec.contributions.codec.rate, 2);
  // A resolved file says the same, and an override of a general entry leaves a segment's own.
  const auto again = ParseExperiment(ToYaml(e), "test", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToYaml(*again), ToYaml(e));
  const auto other = ParseExperiment(ToYaml(e), "test", {"replicas.contributions.rate=3"});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(ReplicasFrom(*other)->ContributionsOf(0).codec.rate, 1);
  EXPECT_EQ(ReplicasFrom(*other)->contributions.codec.rate, 3);
  const auto gathers = ParseExperiment(ToYaml(e), "test", {"replicas.exchange=gather"});
  ASSERT_TRUE(gathers.ok()) << gathers.status();
  EXPECT_FALSE(gathers->replicas().stages().at("head").has_average());
}

TEST(ReplicasConfigTest, AnOverrideReplacesTheCodecOfASegment) {
  const std::string file = ToYaml(With({"replicas.stages={layer1: {contributions: {rate: 1}}}"}));
  const auto with = [&](const std::string& override) {
    const auto e = ParseExperiment(
        file, "test", {absl::StrCat("replicas.stages.layer1.contributions={", override, "}")});
    EXPECT_TRUE(e.ok()) << e.status();
    return e.ok() ? e->replicas().stages().at("layer1").contributions() : DirectionConfig();
  };
  const DirectionConfig sparse = with("codec: topk, ratio: 0.1");
  EXPECT_FALSE(sparse.has_rate());
  EXPECT_EQ(sparse.feedback().kind(), "ef");
  const DirectionConfig unbiased = with("rounding: stochastic");
  EXPECT_FALSE(unbiased.has_reconstruction());
  EXPECT_EQ(unbiased.rate().bits(), 1);
}

TEST(ReplicasConfigTest, RefusalsOfSegmentsNameFieldValueAndWhatIsWanted) {
  EXPECT_THAT(ErrorWith({"replicas.stages={layer2: {contributions: {codec: none}}}"}),
              HasSubstr("replicas.stages.layer2: unknown segment \"layer2\"; did you mean layer1? "
                        "Known: layer1, head"));
  EXPECT_THAT(ErrorWith({"replicas.stages={head: {average: {codec: uniform, feedback: ef}}}"}),
              HasSubstr("replicas.stages.head.average.feedback: ef, want none"));
  EXPECT_THAT(ErrorWith({"replicas.stages={head: {average: {codec: low_rank, rank: 2}}}"}),
              HasSubstr("replicas.stages.head.average.codec: low_rank, want one without state"));
  EXPECT_THAT(ErrorWith({"replicas={exchange: gather, stages: {head: {average: {codec: none}}}}"}),
              HasSubstr("replicas.stages.head.average: with replicas.exchange gather, want none"));
  EXPECT_THAT(ErrorWith({"replicas.stages={head: {contributions: {feedback: {kind: ef, key: "
                         "batch}}}}"}),
              HasSubstr("replicas.stages.head.contributions.feedback.key: batch, want slot or"));
  EXPECT_THAT(ErrorWith({"replicas.stages={head: {contributions: {feedback: {kind: ef, "
                         "limit_bytes: 5}}}}"}),
              HasSubstr("replicas.stages.head.contributions.feedback.limit_bytes: 5, want 0"));
  const std::string rank = "{contributions: {codec: low_rank, rank: 64}}";
  EXPECT_THAT(ErrorWith({"replicas.stages={head: " + rank + "}", "model.width=64"}),
              HasSubstr("replicas.stages.head.contributions: low_rank: rank 64"));
  // layer1 has no piece of more than 64 rows or columns on which that is tried in vain.
  EXPECT_THAT(
      ErrorWith({"replicas.contributions={codec: low_rank, rank: 64, feedback: none}",
                 "replicas.stages={head: {contributions: {codec: none}}}", "model.width=64"}),
      HasSubstr("replicas.contributions: low_rank: rank 64"));
  EXPECT_THAT(ErrorWith({"replicas.stages=none"}), HasSubstr("met none, want a map, or auto"));
}

// Exact contributions are 16 times as long as those of 2 bits.
TEST(ReplicasConfigTest, AutoCompressesOnlySegmentsWhoseExchangeLengthensAStep) {
  const auto chosen = [](const std::string& mbit, const std::vector<std::string>& more = {}) {
    std::vector<std::string> overrides = {"replicas.stages=auto", "replicas.link_mbit=" + mbit,
                                          "pipeline.cuts=[stem, layer1, layer2]"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    std::vector<std::string> exact;
    const Experiment e = With(overrides);
    EXPECT_FALSE(e.replicas().has_link_mbit());
    for (const auto& [name, own] : e.replicas().stages()) {
      EXPECT_EQ(own.contributions().codec(), "none");
      EXPECT_EQ(own.average().codec(), "none");
      exact.push_back(name);
    }
    std::sort(exact.begin(), exact.end());
    EXPECT_EQ(ToYaml(*ParseExperiment(ToYaml(e), "test", {})), ToYaml(e));
    return exact;
  };
  // Over fast links nothing is exposed. The last segment has most parameters, whose sums are longer
  // than anything of the others.
  EXPECT_THAT(chosen("1000000"), ElementsAre("head", "layer1", "layer2", "stem"));
  EXPECT_THAT(chosen("100"), ElementsAre("layer1", "layer2", "stem"));
  // It does not depend on where segments lie.
  for (const char* stages : {"1", "2", "4"}) {
    EXPECT_EQ(chosen("100", {std::string("pipeline.stages=") + stages}), chosen("100"));
  }
  // A rare exchange hardly lengthens the mean step.
  EXPECT_THAT(chosen("100", {"replicas.sync=local", "replicas.every=1000"}),
              ElementsAre("head", "layer1", "layer2", "stem"));
}

TEST(ReplicasConfigTest, AutoReplacesTheEntriesOfAFile) {
  const std::string file = ToYaml(With({"replicas.stages={layer1: {contributions: {rate: 1}}}"}));
  const auto e =
      ParseExperiment(file, "test", {"replicas.stages=auto", "replicas.link_mbit=1000000"});
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->replicas().stages().at("layer1").contributions().codec(), "none");
  EXPECT_EQ(e->replicas().stages_size(), 2);
}

TEST(ReplicasConfigTest, RefusalsOfAutoNameFieldValueAndWhatIsWanted) {
  EXPECT_THAT(ErrorWith({"replicas.stages=auto"}),
              HasSubstr("replicas.link_mbit: is required with replicas.stages: auto"));
  EXPECT_THAT(ErrorWith({"replicas.link_mbit=100"}),
              HasSubstr("replicas.link_mbit: 100, want none without replicas.stages: auto"));
  EXPECT_THAT(ErrorWith({"replicas={stages: auto, link_mbit: 0}"}),
              HasSubstr("replicas.link_mbit: 0, want 1e-06 to 1e+12 Mbit/s"));
  EXPECT_THAT(ErrorWith({"replicas={stages: {auto: {}, head: {}}, link_mbit: 1}"}),
              HasSubstr("replicas.stages: auto and entries of segments, want one of both"));
  EXPECT_THAT(ErrorWith({"replicas={stages: auto, link_mbit: 1, count: 65}", "data.batch_size=400",
                         "pipeline.microbatches=1"}),
              HasSubstr("replicas.count: 65, want at most 64 with replicas.stages: auto"));
  EXPECT_THAT(
      ErrorWith({"replicas={stages: auto, link_mbit: 1}", "data.batch_size=40000",
                 "pipeline.microbatches=9000"}),
      HasSubstr("pipeline.microbatches: 9000, want at most 8192 for 2 segments of 4 replicas "
                "with replicas.stages: auto"));
  EXPECT_THAT(ErrorWith({"replicas={stages: {auto: {average: {codec: none}}}, link_mbit: 1}"}),
              HasSubstr("replicas.stages.auto: entries, want none"));
}

TEST(ReplicasConfigTest, RefusalsNameFieldValueAndWhatIsWanted) {
  EXPECT_THAT(ErrorWith({"replicas.count=0"}), HasSubstr("replicas.count: 0, want 1 to 10"));
  EXPECT_THAT(
      ErrorWith({"replicas.count=11"}),
      HasSubstr("replicas.count: 11, want 1 to 10, so that each of a replica's 4 microbatches "
                "has a sample of the batch of 40"));
  EXPECT_THAT(ErrorWith({"replicas={exchange: ring}"}),
              HasSubstr("replicas.exchange: unknown exchange \"ring\""));
  EXPECT_THAT(ErrorWith({"replicas.average={codec: uniform, feedback: ef}"}),
              HasSubstr("replicas.average.feedback: ef, want none"));
  EXPECT_THAT(ErrorWith({"replicas.average={codec: uniform, outliers: 2}"}),
              HasSubstr("replicas.average.outliers: 2, want 0: what an owner remembers"));
  EXPECT_THAT(ErrorWith({"replicas.average={codec: low_rank, rank: 2}"}),
              HasSubstr("replicas.average.codec: low_rank, want one without state"));
  EXPECT_THAT(ErrorWith({"replicas={exchange: gather, average: {codec: fp16}}"}),
              HasSubstr("replicas.average: with replicas.exchange gather, want none"));
  EXPECT_THAT(ErrorWith({"replicas.contributions.feedback={kind: ef, key: batch}"}),
              HasSubstr("replicas.contributions.feedback.key: batch, want slot or stream"));
  EXPECT_THAT(ErrorWith({"replicas.contributions.epilogue_only=true"}),
              HasSubstr("replicas.contributions.epilogue_only: true, want false"));
  EXPECT_THAT(ErrorWith({"replicas.contributions={codec: topk, ratio: 0.1, "
                         "level: {target_error: 0.5, min: 0.1, max: 0.9}}"}),
              HasSubstr("replicas.contributions.level.target_error: 0.5, want level.by_epoch"));
  EXPECT_THAT(ErrorWith({"replicas.contributions={codec: topk, ratio: 0.1, "
                         "level: {by_epoch: {50: 0.2}}}"}),
              HasSubstr("replicas.contributions.level.by_epoch: epoch 50"));
  EXPECT_THAT(ErrorWith({"replicas.contributions.feedback={kind: ef, limit_bytes: 5}"}),
              HasSubstr("replicas.contributions.feedback.limit_bytes: 5, want 0"));
  EXPECT_THAT(ErrorWith({"replicas.contributions.feedback={kind: ef, dir: /tmp}"}),
              HasSubstr("replicas.contributions.feedback.dir: /tmp, want none"));
  EXPECT_THAT(ErrorWith({"replicas.contributions={codec: low_rank, rank: 64}", "model.width=64"}),
              HasSubstr("replicas.contributions: low_rank: rank 64"));
  EXPECT_THAT(ErrorWith({"compression.activations={codec: uniform, feedback: aq_sgd}"}),
              HasSubstr("compression.activations.feedback.key: sample with replicas.count 4 and "
                        "data.shuffle samples, want data.shuffle: batches"));
}

}  // namespace
}  // namespace thinwire
