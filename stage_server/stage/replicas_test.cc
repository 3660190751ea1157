// Tests replicas that one pipeline carries, or several. How segments are spread over stages, and
// replicas over carriers, may not change a bit of what they learn, nor a byte of what counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/settings_testing.h"
#include "config/experiment.h"
#include "models/pieces.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The last batch has 10 of the 50 samples, so that the last of three replicas has fewer
// microbatches.
constexpr char kExperiment[] = R"(
name: replicas
model: {name: resnet8, width: 16}
data: {name: digits, batch_size: 20, limit: 50, test_limit: 40}
pipeline: {cuts: [stem, layer2], microbatches: 4, threads: 1}
replicas: {count: 3}
optimizer: {name: sgd, lr: 0.1, momentum: 0.9}
epochs: 1
)";

struct Counts {
  uint64_t messages = 0, elements = 0, wire_bytes = 0;

  void Add(const BoundaryStatistics& from) {
    messages += from.train.messages;
    elements += from.train.elements;
    wire_bytes += from.train.wire_bytes;
  }
  friend bool operator==(const Counts& a, const Counts& b) {
    return a.messages == b.messages && a.elements == b.elements && a.wire_bytes == b.wire_bytes;
  }
};

struct Replicas : Stages {
  explicit Replicas(const std::vector<std::string>& overrides, int carriers = 1)
      : Stages(
            kExperiment, overrides, CpuBackend, [](StageSpec*) {}, carriers) {}

  Counts contributions() {
    Counts all;
    for (size_t i = 0; i < size(); ++i)
      all.Add(stage(i).averager()->counts().Of(PHASE_CONTRIBUTION).all());
    return all;
  }
  Counts average() {
    Counts all;
    for (size_t i = 0; i < size(); ++i)
      all.Add(stage(i).averager()->counts().Of(PHASE_AVERAGE).all());
    return all;
  }
  // Returns the number of parameters that are trained, and of running statistics.
  uint64_t trained() { return Elements(/*trained=*/true); }
  uint64_t statistics() { return Elements(/*trained=*/false); }

 private:
  uint64_t Elements(bool trained) {
    uint64_t elements = 0;
    for (size_t i = 0; i < size(); ++i) {
      for (const Parameter* parameter : stage(i).parameters()) {
        if (parameter->gradient.empty() != trained) elements += parameter->value.elements();
      }
    }
    return elements;
  }
};

class ReplicasTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<std::string> With(const std::string& more) const {
    return {GetParam(), more, "compression.gradients={codec: topk, ratio: 0.3, feedback: ef}",
            "compression.activations={codec: uniform, bits: 4, rounding: stochastic}"};
  }
};

TEST_P(ReplicasTest, StagesTrainLikeOneAndCountTheSameBytes) {
  Replicas one(With("pipeline.stages=1")), three(With("pipeline.stages=3"));
  const std::vector<double> losses = one.Train();
  ASSERT_THAT(losses, SizeIs(3));
  EXPECT_THAT(three.Train(), ElementsAreArray(losses));
  EXPECT_THAT(three.Values(), ElementsAreArray(one.Values()));
  EXPECT_EQ(three.contributions(), one.contributions());
  EXPECT_EQ(three.average(), one.average());
  EXPECT_EQ(three.Evaluate(/*compressed=*/true).loss(), one.Evaluate(/*compressed=*/true).loss());
}

TEST_P(ReplicasTest, CarriersTrainLikeOneAndCountTheSameBytes) {
  for (const int stages : Settings({1, 2})) {
    SCOPED_TRACE(stages);
    std::vector<std::string> overrides = With(absl::StrCat("pipeline.stages=", stages));
    // Cuts remember, in the order of their messages, and so do contributions.
    overrides.push_back("compression.activations={codec: uniform, bits: 4, feedback: ef21}");
    overrides.push_back("replicas.count=4");
    Replicas one(overrides);
    const std::vector<double> losses = one.Train();
    for (const int carriers : Settings({2, 3, 4})) {
      SCOPED_TRACE(carriers);
      Replicas several(overrides, carriers);
      EXPECT_THAT(several.Train(), ElementsAreArray(losses));
      EXPECT_THAT(several.Values(), ElementsAreArray(one.Values()));
      EXPECT_EQ(several.contributions(), one.contributions());
      EXPECT_EQ(several.average(), one.average());
      EXPECT_EQ(several.Evaluate(/*compressed=*/true).loss(),
                one.Evaluate(/*compressed=*/true).loss());
    }
  }
}

// Two of four replicas are traced. Each contributes what the last segments have while the segments
// before are at work, and the rest at the end.
TEST_P(ReplicasTest, ContributionsLeaveWhileTheSegmentsBeforeAreAtWork) {
  for (const char* schedule : {"1f1b", "zero_bubble"}) {
    SCOPED_TRACE(schedule);
    const auto trace = std::make_shared<StepTrace>(2, 2, 1000);
    std::vector<std::string> overrides = With("pipeline.stages=1");
    overrides.push_back(absl::StrCat("pipeline.schedule=", schedule));
    overrides.push_back("replicas.count=4");
    Stages stages(
        kExperiment, overrides, CpuBackend,
        [&](StageSpec* spec) { spec->trace = spec->carrier == 0 ? trace : nullptr; },
        /*carriers=*/2);
    stages.Train();
    std::vector<std::string> order;
    for (const Slice& slice : trace->Take().slices) {
      const std::string name = slice.name;
      if (name == "encode contribution") order.push_back("contribute");
      if (absl::StartsWith(name, "backward") && name != "backward input") order.push_back("back");
    }
    // Four microbatches of three segments each, of which the last microbatch's are shown.
    const std::vector<std::string> end = {"back",       "contribute", "back",
                                          "contribute", "back",       "contribute"};
    ASSERT_THAT(order, SizeIs(2 * (12 + 3)));
    for (auto replica = order.begin(); replica != order.end(); replica += 15) {
      EXPECT_THAT(std::vector<std::string>(replica + 9, replica + 15), ElementsAreArray(end));
    }
  }
}

// The last batch of 41 samples has one, so that two of three replicas are empty.
TEST_P(ReplicasTest, EmptyReplicasAndOtherSchedulesTrainAlikeOnAllStages) {
  for (const char* schedule : {"zero_bubble", "gpipe"}) {
    SCOPED_TRACE(schedule);
    std::vector<std::string> overrides = With(absl::StrCat("pipeline.schedule=", schedule));
    overrides.push_back("data.limit=41");
    overrides.push_back("pipeline.stages=1");
    Replicas one(overrides);
    overrides.back() = "pipeline.stages=3";
    const std::vector<double> losses = one.Train();
    for (const int carriers : {1, 3}) {
      Replicas three(overrides, carriers);
      EXPECT_THAT(three.Train(), ElementsAreArray(losses));
      EXPECT_THAT(three.Values(), ElementsAreArray(one.Values()));
      EXPECT_EQ(three.contributions(), one.contributions());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, ReplicasTest,
    ::testing::Values(
        "replicas.exchange=gather",
        "replicas={contributions: {codec: ecsq, rate: 2, feedback: ef}, average: {codec: uniform}}",
        "replicas={contributions: {codec: topk, ratio: 0.05, feedback: ef}, exchange: gather}",
        "replicas={contributions: {codec: topk, ratio: 0.05, scope: group, group: 500, values: "
        "means, feedback: {kind: ef, decay: 0.95}}}",
        "replicas={contributions: {codec: low_rank, rank: 2, feedback: ef}}",
        // Segments by factors of other ranks, and one whole.
        "replicas={contributions: {codec: low_rank, rank: 3, feedback: {kind: ef, decay: 0.9}}, "
        "average: {codec: fp16}, stages: {layer2: {contributions: {rank: 2, feedback: none}}, "
        "head: {contributions: {codec: uniform, bits: 8}}}}",
        "replicas={contributions: {codec: uniform, bits: 4, feedback: ef21}, average: {codec: "
        "bf16}}",
        // Segments with entries of their own: stem, layer2 and head.
        "replicas={contributions: {codec: ecsq, rate: 2, feedback: ef}, average: {codec: uniform}, "
        "stages: {layer2: {contributions: {rate: 1, feedback: none}}, head: {contributions: "
        "{codec: none}, average: {codec: none}}}}",
        "replicas={exchange: gather, stages: {head: {contributions: {codec: topk, ratio: 0.05, "
        "feedback: ef21}}}}"));

// The embedding is [65, 64], a piece of its own.
constexpr char kTiedText[] = R"(
name: replicas
model: {name: gpt2, width: 64, layers: 2, heads: 2}
data: {name: shakespeare, batch_size: 6, context: 16, windows: 19, test_limit: 2}
pipeline: {cuts: [h.0], microbatches: 1, threads: 1}
optimizer: {name: adamw, lr: 0.01, clip_norm: 0.5}
epochs: 1
)";

// Random numbers of a sum may not depend on its owner, who differs for the two copies.
TEST(TiedReplicasTest, BothCopiesStayEqual) {
  for (const char* replicas :
       {"{count: 3, contributions: {codec: uniform, bits: 4, rounding: stochastic}, average: "
        "{codec: "
        "uniform, bits: 4, rounding: stochastic}}",
        "{count: 3, contributions: {codec: low_rank, rank: 2, feedback: ef}}",
        // The copy has the entries of its original's segment, h.0.
        "{count: 3, contributions: {codec: uniform, bits: 4, feedback: ef}, stages: {head: "
        "{contributions: {codec: none}, average: {codec: fp16}}}}"}) {
    SCOPED_TRACE(replicas);
    const std::string section = absl::StrCat("replicas=", replicas);
    Stages one(kTiedText, {section, "pipeline.stages=1"}), two(kTiedText, {section});
    EXPECT_THAT(two.Train(), ElementsAreArray(one.Train()));
    EXPECT_THAT(two.Values(), ElementsAreArray(one.Values()));
    const auto values = [&](size_t stage, const std::string& name) {
      for (const Parameter* parameter : two.stage(stage).parameters()) {
        const auto floats = parameter->value.floats();
        if (parameter->spec.name == name) return std::vector<float>(floats.begin(), floats.end());
      }
      return std::vector<float>();
    };
    const TiedWeight tied = *two.stage(0).spec().tied;
    ASSERT_THAT(values(0, tied.name), SizeIs(65 * 64));
    EXPECT_THAT(values(1, tied.copy), ElementsAreArray(values(0, tied.name)));
  }
}

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * static_cast<double>(a[i] - b[i]);
    norm += a[i] * static_cast<double>(a[i]);
  }
  return std::sqrt(difference / norm);
}

TEST(ReplicasTest, WithoutCodecsTheGradientIsThatOfOnePipelineWithAllMicrobatches) {
  Replicas three({"pipeline.stages=1", "pipeline.microbatches=2"});
  Stages whole(kExperiment, {"replicas.count=1", "pipeline.stages=1", "pipeline.microbatches=6"});
  EXPECT_LT(Distance(whole.Gradients(1, false), three.Gradients(1, false)), 1e-6);
  EXPECT_THAT(three.Gradients(2, true), ElementsAreArray(three.Gradients(2, true)));
}

TEST(ReplicasTest, EachReplicaSendsWhatOthersOwnAndGetsTheSum) {
  Replicas three({"pipeline.stages=1"});
  const uint64_t steps = three.Train().size();
  // Two of three replicas send a piece to its owner, and two receive the sum. Each sends its
  // running statistics to both others.
  EXPECT_EQ(three.contributions().elements, steps * 2 * (three.trained() + 3 * three.statistics()));
  EXPECT_EQ(three.average().elements, steps * 2 * three.trained());
  EXPECT_GT(three.average().wire_bytes, 4 * three.average().elements);
  EXPECT_LT(three.average().wire_bytes, 4.05 * three.average().elements);
  Replicas all({"pipeline.stages=1", "replicas.exchange=gather"});
  all.Train();
  EXPECT_EQ(all.contributions().elements, steps * 3 * 2 * (all.trained() + all.statistics()));
  EXPECT_EQ(all.average().messages, 0u);
  EXPECT_THAT(all.Values(), ElementsAreArray(three.Values()));  // both add exactly
}

TEST(ReplicasTest, ASegmentWithCodecNoneIsExchangedExactly) {
  const std::string general = "replicas.contributions={codec: uniform, bits: 8}";
  const std::string average = "replicas.average={codec: uniform, bits: 8}";
  const std::string own =
      "replicas.stages={head: {contributions: {codec: none}, average: {codec: none}}}";
  Replicas all({general, average}), exact({}), some({general, average, own});
  for (Replicas* replicas : {&all, &exact, &some}) replicas->Train();
  const auto sent = [](Replicas* replicas, size_t stage) {
    ExchangeCounts& counts = replicas->stage(stage).averager()->counts();
    return std::make_pair(counts.Of(PHASE_CONTRIBUTION).all().train.wire_bytes,
                          counts.Of(PHASE_AVERAGE).all().train.wire_bytes);
  };
  ASSERT_EQ(some.size(), 3u);
  EXPECT_EQ(sent(&some, 1), sent(&all, 1));
  EXPECT_EQ(sent(&some, 2), sent(&exact, 2));
  EXPECT_NE(sent(&all, 1), sent(&exact, 1));
  EXPECT_NE(sent(&all, 2), sent(&exact, 2));
}

TEST(ReplicasTest, InStepsOfWarmUpPiecesGoWholeWhateverTheirCodec) {
  const std::string low = "replicas.contributions={codec: low_rank, rank: 2, feedback: ef}";
  Replicas exact({}), warm({low, "compression.warmup_steps=3"}), coded({low});
  for (Replicas* replicas : {&exact, &warm, &coded}) replicas->Train();
  EXPECT_EQ(warm.Values(), exact.Values());
  EXPECT_EQ(warm.average(), exact.average());
  EXPECT_NE(warm.Values(), coded.Values());
  Replicas one({low, "compression.warmup_steps=1"});
  Replicas three({low, "compression.warmup_steps=1"}, /*carriers=*/3);
  one.Train();
  three.Train();
  EXPECT_EQ(three.Values(), one.Values());
  EXPECT_NE(one.Values(), coded.Values());
}

TEST(ReplicasTest, FeedbackMakesUpForWhatContributionsLose) {
  const std::string sparse = "replicas.contributions={codec: topk, ratio: 0.02}";
  Replicas exact({}), plain({sparse}), with({sparse, "replicas.contributions.feedback=ef"});
  for (Replicas* replicas : {&exact, &plain, &with}) replicas->Train();
  EXPECT_NE(plain.Values(), with.Values());
  EXPECT_LT(Distance(exact.Values(), with.Values()), Distance(exact.Values(), plain.Values()));
}

// Returns all running statistics.
std::vector<float> StatisticsOf(Stages* stages) {
  std::vector<float> all;
  for (size_t i = 0; i < stages->size(); ++i) {
    for (const Parameter* parameter : stages->stage(i).parameters()) {
      if (parameter->spec.is_trained()) continue;
      const auto floats = parameter->value.floats();
      all.insert(all.end(), floats.begin(), floats.end());
    }
  }
  return all;
}

TEST(ReplicasTest, RunningStatisticsAreMeansOverReplicas) {
  // Parameters stay as they are, so that a step of two replicas has the batches of two steps of
  // one.
  const std::vector<std::string> same = {"pipeline.stages=1", "pipeline.microbatches=1",
                                         "data.limit=20", "optimizer={lr: 1e-30}"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = same;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  Stages two(kExperiment, with({"replicas.count=2"}));
  Stages one(kExperiment, with({"replicas.count=1", "data.batch_size=10"}));
  const std::vector<float> start = StatisticsOf(&one);
  one.TrainSteps(1, 1, 1);
  const std::vector<float> once = StatisticsOf(&one);
  one.TrainSteps(1, 2, 2);
  const std::vector<float> twice = StatisticsOf(&one);
  two.TrainSteps(1, 1, 1);
  const std::vector<float> mean = StatisticsOf(&two);
  ASSERT_EQ(mean.size(), start.size());
  for (size_t i = 0; i < mean.size(); ++i) {
    // What the second batch leaves from the start: momentum is 0.1.
    const float second = 0.9f * start[i] + (twice[i] - 0.9f * once[i]);
    EXPECT_NEAR(mean[i], (once[i] + second) / 2, 1e-5 * (1 + std::abs(mean[i])));
  }
}

TEST(ReplicasTest, CarriersThatAreNoLongerEqualSayWhereAndWhen) {
  Replicas two({"pipeline.stages=1", "replicas.digest_every=2"}, /*carriers=*/2);
  two.stage(1).parameters().front()->value.floats()[0] += 1;
  std::string said;
  for (const absl::Status& status : two.TryTrain(1)) {
    EXPECT_FALSE(status.ok());
    if (absl::IsFailedPrecondition(status)) absl::StrAppend(&said, status.message());
  }
  EXPECT_THAT(said, ::testing::ContainsRegex(
                        "replica [0-9], .*: step 2: from carrier [01]: its parameters have the "
                        "digest [0-9a-f]+, those here [0-9a-f]+: the carriers of this stage"));
  Replicas never({"pipeline.stages=1", "replicas.digest_every=0"}, /*carriers=*/2);
  never.stage(1).parameters().front()->value.floats()[0] += 1;
  for (const absl::Status& status : never.TryTrain(1)) EXPECT_TRUE(status.ok()) << status;
}

TEST(ReplicasTest, ACodecThatCannotCarryAPieceIsNamed) {
  const auto build = [](const std::string& contributions) {
    const auto experiment = ParseExperiment(
        kExperiment, "test", {absl::StrCat("replicas.contributions=", contributions)});
    return std::string(experiment.status().message());
  };
  EXPECT_THAT(build("{codec: topk, ratio: 0.1, feedback: {kind: ef, key: sample}}"),
              HasSubstr("replicas.contributions.feedback.key: sample, want slot or stream"));
  EXPECT_THAT(build("{codec: topk, indices: shared}"),
              HasSubstr("replicas.contributions.indices: shared, want own"));
}

}  // namespace
}  // namespace thinwire
