// Tests that `thinwire plan` says to the byte what a run sends, where every payload of a codec has
// the same size.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "config/specs.h"
#include "config/tensor_parts.h"
#include "coordinator/plan/plan.h"
#include "coordinator/plan/speeds.h"
#include "models/frozen.h"
#include "models/part_rounds.h"
#include "models/parts.h"
#include "models/tied_weight.h"
#include "tests/pipeline_testing.h"

namespace thinwire {
namespace {

// The microbatches have 11 and 10 samples, and the last step is as full as the others.
constexpr char kExperiment[] = R"(
name: planned
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 42, limit: 84, test_limit: 20}
pipeline: {cuts: [stem, layer1, layer2], stages: 2, microbatches: 4, threads: 1}
optimizer: {lr: 0.1}
epochs: 2
)";
constexpr uint64_t kSteps = 4;

// Returns the messages of all parts of a step of a replica in one direction.
uint64_t PartMessages(const Experiment& experiment, const Partition& partition, bool gradient) {
  uint64_t of_microbatch = 0, of_step = 0;
  const int blocks = static_cast<int>(partition.model.blocks.size());
  for (int block = 0; block < blocks; ++block) {
    for (const LayerSpec* layer : LayersWithRounds(partition.model.blocks[block])) {
      if (gradient && !GoesBack(partition.model, block, *layer)) continue;
      of_microbatch += RoundsOf(*layer, gradient).size();
      // Where slices end there are gradients that they add up.
      of_step += gradient && layer->kind == LayerKind::kToWhole;
    }
  }
  const auto parts = static_cast<uint64_t>(PartsOf(experiment));
  return (of_microbatch * experiment.pipeline().microbatches() + of_step) * parts * (parts - 1);
}

// Returns the messages of a step and replica in one direction of a cut, where others have
// `messages`.
uint64_t MessagesAt(const std::string& name, bool gradient, uint64_t messages,
                    const Experiment& experiment, const Partition& partition) {
  if (name == kTiedCut) return 1;
  for (const Cut& cut : partition.cuts) {
    if (cut.name != name || HasGradients(partition.model, cut)) continue;
    return gradient ? 0 : experiment.pipeline().microbatches();
  }
  return messages;
}

// Expects a run to send what is planned. Every direction of every cut has `messages` messages a
// step and replica; the tied cut has one.
void ExpectPlannedBytes(const char* text, const std::vector<std::string>& overrides,
                        uint64_t messages) {
  const auto experiment = ParseExperiment(text, "test", overrides);
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  const absl::StatusOr<Partition> partition = PartitionFrom(*experiment);
  ASSERT_TRUE(partition.ok()) << partition.status();
  Speeds speeds;  // unset, because bytes do not depend on them
  speeds.blocks = *BlocksAt(partition->model, /*gflops=*/100);
  const absl::StatusOr<Plan> plan = MakePlan(*experiment, PlanAssumptions(), speeds);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Trained outcome = TrainPipeline(text, overrides);
  const uint64_t parts = kSteps * ReplicasOf(*experiment);
  // A message of microbatch 0, which the first replica alone has, does without its number.
  const uint64_t numbers = 2 * (parts - kSteps);
  const auto exchanged = static_cast<uint64_t>(plan->exchange.contributions.wire_bytes +
                                               plan->exchange.average.wire_bytes);
  EXPECT_EQ(outcome.exchanged_bytes, kSteps * exchanged);
  std::vector<PlannedBoundary> boundaries = plan->boundaries;
  if (plan->sums) boundaries.push_back(*plan->sums);
  for (const PlannedBoundary& planned : boundaries) {
    for (const bool gradient : {false, true}) {
      // The first message of a replica has the numbers of the outlier channels.
      const uint64_t outliers =
          planned.name == kSums ? 0 : DirectionOf(*experiment, planned.name, gradient).outliers();
      const uint64_t channels = 4 * outliers * ReplicasOf(*experiment);
      if (planned.name == kSums) messages = PartMessages(*experiment, *partition, gradient);
      const PlannedDirection& direction = gradient ? planned.gradients : planned.activations;
      const std::string name = planned.name + (gradient ? "/gradient" : "/activation");
      const BoundaryReport& sent = outcome.boundaries.at(name);
      const uint64_t wanted = MessagesAt(planned.name, gradient, messages, *experiment, *partition);
      EXPECT_EQ(sent.messages(), parts * wanted) << name;
      EXPECT_EQ(sent.raw_bytes(), parts * static_cast<uint64_t>(direction.raw_bytes)) << name;
      EXPECT_EQ(sent.wire_bytes(),
                parts * static_cast<uint64_t>(direction.wire_bytes) + numbers + channels)
          << name;
    }
  }
}

class PlannedBytesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PlannedBytesTest, AreThoseThatARunSends) {
  ExpectPlannedBytes(kExperiment,
                     {absl::StrCat("compression.activations={", GetParam(), "}"),
                      absl::StrCat("compression.gradients={", GetParam(), "}")},
                     /*messages=*/4);
}

TEST(PlannedBytesOfNormTest, HaveTheNormOfTheGradientInThem) {
  ExpectPlannedBytes(kExperiment, {"optimizer.clip_norm=1"}, /*messages=*/5);
}

// Nothing before the cuts behind stem and layer1 is trained.
TEST(PlannedBytesOfFrozenBlocksTest, HaveNoGradientsAndNoNormBeforeWhatIsTrained) {
  ExpectPlannedBytes(kExperiment,
                     {"freeze=[stem, layer1]", "optimizer.clip_norm=1",
                      "compression.activations={codec: uniform, bits: 4}"},
                     /*messages=*/5);
}

constexpr char kLanguageModel[] = R"(
name: language
model: {name: gpt2, layers: 2, heads: 2, width: 16}
data: {name: shakespeare, context: 16, batch_size: 6, limit: 12, test_limit: 6}
pipeline: {cuts: [h.0, h.1], stages: 3, microbatches: 2, threads: 1}
optimizer: {name: adamw, lr: 0.01, clip_norm: 1}
epochs: 2
)";

TEST(PlannedBytesOfBasesTest, HaveTheGradientOfALearnedBasisInThem) {
  ExpectPlannedBytes(kLanguageModel, {"compression.bottleneck={kind: learned_subspace, width: 5}"},
                     /*messages=*/4);
}

// Each step has two microbatches of four slices, and a message with the norm.
TEST(PlannedBytesOfSlicesTest, AreThoseThatARunSends) {
  for (const char* slices : {"4", "[3, 1, 6, 6]"}) {
    SCOPED_TRACE(slices);
    ExpectPlannedBytes(kLanguageModel,
                       {"pipeline.schedule=terapipe", absl::StrCat("pipeline.slices=", slices),
                        "compression.activations={codec: uniform, bits: 4, scope: token}"},
                       /*messages=*/9);
  }
}

TEST(PlannedBytesOfTiedWeightsTest, AreThoseThatARunSends) {
  for (const char* codec :
       {"codec: none", "codec: fp16", "codec: uniform, bits: 4, feedback: ef"}) {
    SCOPED_TRACE(codec);
    ExpectPlannedBytes(kLanguageModel,
                       {absl::StrCat("compression.boundaries.tied={activations: {", codec,
                                     "}, gradients: {", codec, "}}")},
                       /*messages=*/3);
  }
}

// One stage counts all sums of the model, as if each part had a machine.
TEST(PlannedBytesOfSumsTest, AreThoseThatARunSends) {
  for (const char* sums : {"from_layer: 0",
                           "from_layer: 1, activations: {codec: uniform, bits: 8}, "
                           "gradients: {codec: fp16}"}) {
    SCOPED_TRACE(sums);
    ExpectPlannedBytes(kLanguageModel,
                       {"pipeline.stages=1", "optimizer.clip_norm=null", "tensor.parts=2",
                        absl::StrCat("compression.sums={", sums, "}")},
                       /*messages=*/2);
  }
}

TEST(PlannedBytesOfSumsTest, OfFrozenBlocksAreThoseThatARunSends) {
  for (const char* sequence : {"false", "true"}) {
    SCOPED_TRACE(sequence);
    ExpectPlannedBytes(
        kLanguageModel,
        {"pipeline.stages=1", "pipeline.cuts=h.0", "optimizer.clip_norm=null",
         "freeze=[embedding, h.0]", absl::StrCat("tensor={parts: 2, sequence: ", sequence, "}")},
        /*messages=*/2);
  }
}

// Two of three segments begin and end slices, and add up their gradients in each step.
TEST(PlannedBytesOfSlicedPositionsTest, AreThoseThatARunSends) {
  ExpectPlannedBytes(
      kLanguageModel,
      {"pipeline.stages=1", "optimizer.clip_norm=null", "tensor={parts: 2, sequence: true}",
       "compression.sums={from_layer: 1, activations: {codec: uniform, bits: 8}, "
       "gradients: {codec: fp16}}"},
      /*messages=*/2);
}

// What is counted are the messages of a machine for each replica.
TEST(PlannedBytesOfReplicasTest, AreThoseThatARunSends) {
  for (const char* exchange :
       {"exchange: reduce, average: {codec: fp16}", "exchange: gather",
        "average: {codec: fp16}, stages: {layer1: {contributions: {codec: none}}, head: "
        "{contributions: {bits: 8}, average: {codec: none}}}"}) {
    SCOPED_TRACE(exchange);
    ExpectPlannedBytes(kExperiment,
                       {"pipeline.microbatches=2",
                        absl::StrCat("replicas={count: 2, digest_every: 1, contributions: {codec: "
                                     "uniform, bits: 4, feedback: ef}, ",
                                     exchange, "}")},
                       /*messages=*/2);
  }
  for (const char* exchange : {"reduce", "gather"}) {
    SCOPED_TRACE(exchange);
    ExpectPlannedBytes(kExperiment,
                       {"pipeline.microbatches=2", "model.width=16",
                        absl::StrCat("replicas={count: 2, digest_every: 1, contributions: {codec: "
                                     "low_rank, rank: 2, feedback: ef}, exchange: ",
                                     exchange, "}")},
                       /*messages=*/2);
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, PlannedBytesTest,
                         ::testing::Values("codec: none", "codec: fp16",
                                           "codec: uniform, bits: 4, range: max_abs, feedback: ef",
                                           "codec: low_rank, rank: 2",
                                           "codec: uniform, bits: 4, outliers: 2",
                                           "codec: randomk, ratio: 0.1, feedback: {kind: ef21, "
                                           "digest_every: 1}"));

}  // namespace
}  // namespace thinwire
