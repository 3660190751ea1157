// Checks that N stages train what one stage trains, bit for bit, whatever the codec and the
// feedback. Three cuts inside one process stand against four stages with links between them and
// several microbatches under way. A device that is not the host must do as well, alone or beside
// one that is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "stage_server/stage/late_device_testing.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

constexpr char kExperiment[] = R"(
name: compression
model: {name: resnet8, width: 4}
data: {name: digits, batch_size: 12, limit: 42, test_limit: 30, shuffle: batches}
pipeline: {cuts: [stem, layer1, layer2], microbatches: 4, threads: 1}
metrics: {error_every: 1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
epochs: 3
)";

// Returns digests of all that both ends remember of one direction of a cut.
std::vector<uint64_t> Digests(StateStore* store) {
  std::vector<uint64_t> digests;
  if (store == nullptr) return digests;
  for (size_t row = 0; row < store->keys().size(); ++row) {
    digests.push_back(store->keys()[row]);
    digests.push_back(*store->RowDigest(row));
  }
  return digests;
}

struct Outcome {
  std::vector<double> losses;
  double compressed_loss = 0;
  std::vector<float> values;
  std::vector<uint64_t> states;
  std::vector<uint64_t> wire_bytes;
  std::vector<double> errors;
};

Outcome Trained(const std::vector<std::string>& overrides, uint32_t epochs = 2,
                const BackendOf& backend_of = CpuBackend) {
  Stages stages(kExperiment, overrides, backend_of);
  Outcome outcome;
  for (uint32_t epoch = 1; epoch <= epochs; ++epoch) {
    for (double loss : stages.Train(epoch)) outcome.losses.push_back(loss);
    outcome.compressed_loss = stages.Evaluate(/*compressed=*/true).loss();
  }
  outcome.values = stages.Values();
  for (const char* cut : {"stem", "layer1", "layer2"}) {
    for (Direction direction : {DIRECTION_ACTIVATION, DIRECTION_GRADIENT}) {
      BoundarySender& sender = stages.sender(cut, direction);
      const std::vector<uint64_t> here = Digests(sender.feedback().state());
      BoundaryReceiver& receiver = stages.receiver(cut, direction);
      const std::vector<uint64_t> there = Digests(receiver.feedback().state());
      if (receiver.feedback().state() != nullptr) {
        EXPECT_THAT(there, ElementsAreArray(here)) << "both ends of " << cut;
      }
      outcome.states.insert(outcome.states.end(), here.begin(), here.end());
      const BoundaryStatistics statistics = sender.statistics();
      outcome.wire_bytes.push_back(statistics.train.wire_bytes);
      const MeasuredErrors& errors = statistics.errors;
      outcome.errors.insert(outcome.errors.end(),
                            {errors.relative_error, errors.cosine, errors.codec.relative_error,
                             errors.codec.relative_residual});
    }
  }
  return outcome;
}

void ExpectSame(const Outcome& a, const Outcome& b) {
  EXPECT_THAT(b.losses, ElementsAreArray(a.losses));
  EXPECT_EQ(b.compressed_loss, a.compressed_loss);
  EXPECT_TRUE(b.values == a.values) << "parameters differ";
  EXPECT_TRUE(b.states == a.states) << "states differ";
  EXPECT_THAT(b.wire_bytes, ElementsAreArray(a.wire_bytes));
  EXPECT_THAT(b.errors, ElementsAreArray(a.errors));
}

Backend LateBackend(int /*stage*/) { return NewLateBackend(); }
Backend LateThenCpu(int stage) { return stage == 0 ? NewLateBackend() : CpuBackend(stage); }

// Trains with one stage and with four, under either schedule, on the host and on another device;
// expects equal results.
Outcome ExpectStagesChangeNothing(std::vector<std::string> overrides, uint32_t epochs = 2) {
  overrides.push_back("pipeline.stages=1");
  const Outcome one = Trained(overrides, epochs);
  overrides.back() = "pipeline.stages=4";
  overrides.push_back("pipeline.schedule=gpipe");
  ExpectSame(one, Trained(overrides, epochs));
  overrides.back() = "pipeline.schedule=1f1b";
  ExpectSame(one, Trained(overrides, epochs));
  {
    SCOPED_TRACE("on a device that is not the host");
    ExpectSame(one, Trained(overrides, epochs, LateBackend));
  }
  SCOPED_TRACE("two stages, the first on such a device");
  overrides.push_back("pipeline.stages=2");
  ExpectSame(one, Trained(overrides, epochs, LateThenCpu));
  return one;
}

std::vector<std::string> Both(const std::string& codec) {
  return {absl::StrCat("compression.activations={", codec, "}"),
          absl::StrCat("compression.gradients={", codec, "}")};
}

struct Kind {
  const char* name;
  const char* yaml;
};

const Kind kCodecs[] = {
    {"NoneZstd", "codec: none, lossless: zstd"},
    {"Fp16", "codec: fp16"},
    {"Bf16", "codec: bf16"},
    {"Fp8", "codec: fp8"},
    {"Uniform", "codec: uniform, bits: 4"},
    {"UniformStochastic", "codec: uniform, bits: 4, rounding: stochastic"},
    {"UniformHadamard", "codec: uniform, bits: 4, rotation: hadamard, rotation_block: 64"},
    {"UniformZstd", "codec: uniform, bits: 2, lossless: zstd"},
    {"UniformEntropy", "codec: uniform, bits: 4, lossless: entropy"},
    {"TopK", "codec: topk, ratio: 0.2"},
    {"TopKUniform", "codec: topk, ratio: 0.2, values: uniform, bits: 4"},
    {"RandomK", "codec: randomk, ratio: 0.3"},
    {"Threshold", "codec: threshold, threshold: 0.5, relative_to: rms"},
    {"Blockwise8", "codec: blockwise8, block: 64"},
    {"LowRank", "codec: low_rank, rank: 2"},
    {"EcsqPrincipal", "codec: ecsq, rotation: principal, rotation_every: 3"},
    {"UniformOutliers", "codec: uniform, bits: 4, outliers: 2"},
};

const Kind kFeedbacks[] = {
    {"None", "none"},
    {"Ef", "ef"},
    {"EfBatch", "{kind: ef, key: batch, store: fp16, decay: 0.9}"},
    {"Ef21", "{kind: ef21, digest_every: 1}"},
    {"AqSgd", "{kind: aq_sgd, store: q8, digest_every: 1}"},
    {"Lazy", "lazy"},
    {"EfMixedA", "ef_mixed_a"},
    {"EfMixedB", "ef_mixed_b"},
};

bool GoTogether(const Kind& codec, const Kind& feedback) {
  const std::string name = codec.name;
  if (name == "NoneZstd") return std::string(feedback.name) == "None";
  if (std::string(feedback.name) != "EfMixedB") return true;
  return name == "TopK" || name == "TopKUniform" || name == "RandomK";
}

class CompressionGridTest : public ::testing::TestWithParam<std::tuple<Kind, Kind>> {};

TEST_P(CompressionGridTest, StagesAndScheduleChangeNothing) {
  const auto& [codec, feedback] = GetParam();
  if (!GoTogether(codec, feedback)) GTEST_SKIP() << "refused by config";
  ExpectStagesChangeNothing(Both(absl::StrCat(codec.yaml, ", feedback: ", feedback.yaml)));
}

INSTANTIATE_TEST_SUITE_P(Codecs, CompressionGridTest,
                         ::testing::Combine(::testing::ValuesIn(kCodecs),
                                            ::testing::ValuesIn(kFeedbacks)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param).name,
                                               std::get<1>(info.param).name);
                         });

TEST(CompressionTest, GradientsOnTheReceivedActivationsSupport) {
  const std::vector<std::string> activations = {
      "codec: topk, ratio: 0.3", "codec: topk, ratio: 0.3, feedback: ef", "codec: none",
      "codec: uniform, bits: 4, zero: on_grid", "codec: topk, ratio: 0.3, feedback: ef21"};
  const std::vector<std::string> gradients = {
      "codec: topk, indices: shared", "codec: topk, indices: shared, values: uniform, bits: 4",
      "codec: none, support: received_nonzero",
      "codec: uniform, bits: 6, support: received_nonzero",
      "codec: topk, ratio: 0.2, support: received_nonzero"};
  for (size_t a = 0; a < activations.size(); ++a) {
    for (size_t g = 0; g < gradients.size(); ++g) {
      const bool is_shared = g < 2;
      if (is_shared && a > 1) continue;
      SCOPED_TRACE(activations[a] + " and " + gradients[g]);
      ExpectStagesChangeNothing({absl::StrCat("compression.activations={", activations[a], "}"),
                                 absl::StrCat("compression.gradients={", gradients[g], "}")});
    }
  }
}

TEST(CompressionTest, SharedIndicesCostNothingOnTheWire) {
  const auto gradient_bytes = [](const std::string& gradients) {
    const Outcome outcome =
        Trained({"compression.activations={codec: topk, ratio: 0.3}",
                 absl::StrCat("compression.gradients={", gradients, "}"), "pipeline.stages=1"});
    return outcome.wire_bytes[1];  // of stem
  };
  EXPECT_LT(gradient_bytes("codec: topk, indices: shared"),
            gradient_bytes("codec: topk, ratio: 0.3"));
}

TEST(CompressionTest, WarmUpUnderFeedback) {
  for (const char* feedback : {"none", "ef", "ef21", "aq_sgd", "ef_mixed_b"}) {
    SCOPED_TRACE(feedback);
    std::vector<std::string> overrides =
        Both(absl::StrCat("codec: topk, ratio: 0.1, feedback: ", feedback));
    overrides.push_back("compression.warmup_steps=5");  // in the second epoch
    ExpectStagesChangeNothing(overrides);
  }
}

TEST(CompressionTest, TheLongerWarmUpCounts) {
  const auto losses = [](const std::string& more) {
    return Trained({"compression.activations={codec: topk, ratio: 0.1}", "pipeline.stages=1", more})
        .losses;
  };
  std::vector<std::string> exact = {"pipeline.stages=1"};
  const std::vector<double> none = Trained(exact).losses;
  ASSERT_EQ(none.size(), 8u);  // four steps an epoch
  const std::vector<double> steps = losses("compression.warmup_steps=6");
  const std::vector<double> epochs = losses("compression.warmup_epochs=1");
  for (int i = 0; i < 6; ++i) EXPECT_EQ(steps[i], none[i]) << i;
  EXPECT_NE(steps[6], none[6]);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(epochs[i], none[i]) << i;
  EXPECT_NE(epochs[4], none[4]);
}

TEST(CompressionTest, EpilogueOnlyCompressesWhatTheCoolDownReceives) {
  std::vector<std::string> overrides = {
      "compression.gradients={codec: topk, ratio: 0.1, epilogue_only: true}"};
  const Outcome epilogue = ExpectStagesChangeNothing(overrides);
  const Outcome always = Trained({"compression.gradients={codec: topk, ratio: 0.1}"});
  const Outcome never = Trained({});
  // Three of the four gradients of stem are received in the cool-down, and one of layer2's.
  for (int gradient : {1, 3, 5}) {
    EXPECT_LT(epilogue.wire_bytes[gradient], never.wire_bytes[gradient]);
    EXPECT_GT(epilogue.wire_bytes[gradient], always.wire_bytes[gradient]);
  }
  const auto saved = [&](int gradient) {
    return static_cast<double>(never.wire_bytes[gradient] - epilogue.wire_bytes[gradient]) /
           static_cast<double>(never.wire_bytes[gradient] - always.wire_bytes[gradient]);
  };
  EXPECT_NEAR(saved(1), 0.75, 0.05);
  EXPECT_NEAR(saved(3), 0.5, 0.05);
  EXPECT_NEAR(saved(5), 0.25, 0.05);
  for (const char* feedback : {"ef", "lazy", "ef21"}) {
    SCOPED_TRACE(feedback);
    ExpectStagesChangeNothing({absl::StrCat(
        "compression.gradients={codec: low_rank, rank: 2, epilogue_only: true, feedback: ",
        feedback, "}")});
  }
}

TEST(CompressionTest, LevelsByEpoch) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "protobuf's map fields are laid out otherwise in Debian's library";
#endif
  const Outcome falling = ExpectStagesChangeNothing(
      Both("codec: topk, ratio: 0.9, level: {by_epoch: {2: 0.2, 3: 0.05}}, feedback: ef21"), 3);
  std::vector<std::string> fixed = Both("codec: topk, ratio: 0.9, feedback: ef21");
  fixed.push_back("pipeline.stages=1");
  const Outcome constant = Trained(fixed, 3);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(falling.losses[i], constant.losses[i]);
  EXPECT_LT(falling.wire_bytes[0], constant.wire_bytes[0]);
}

TEST(CompressionTest, LevelsByErrorReachTheTarget) {
  const Outcome followed = ExpectStagesChangeNothing(
      Both("codec: uniform, bits: 8, level: {target_error: 0.1, min: 2, max: 8}"), 3);
  const Outcome fixed = Trained({"pipeline.stages=1", "compression.activations={codec: uniform}",
                                 "compression.gradients={codec: uniform}"},
                                3);
  EXPECT_LT(followed.wire_bytes[0], fixed.wire_bytes[0]);
  ExpectStagesChangeNothing(
      Both("codec: topk, ratio: 0.1, level: {target_error: 0.5, min: 0.02, max: 0.6}, "
           "feedback: ef"));
}

TEST(CompressionTest, EvaluationLeavesStatesAlone) {
  for (const char* codec :
       {"codec: topk, ratio: 0.1, feedback: ef", "codec: topk, ratio: 0.1, feedback: ef21",
        "codec: low_rank, rank: 2, feedback: lazy", "codec: uniform, bits: 2, feedback: aq_sgd",
        "codec: ecsq, rotation: principal, rotation_every: 2",
        "codec: uniform, bits: 4, outliers: 2",
        "codec: uniform, rounding: stochastic, level: {target_error: 0.1, min: 2, max: 8}"}) {
    SCOPED_TRACE(codec);
    Stages plain(kExperiment, Both(codec)), evaluated(kExperiment, Both(codec));
    EXPECT_THAT(evaluated.Train(1), ElementsAreArray(plain.Train(1)));
    const double loss = evaluated.Evaluate(true).loss();
    evaluated.Evaluate(false);
    EXPECT_EQ(evaluated.Evaluate(true).loss(), loss);
    std::vector<double> losses = evaluated.TrainSteps(2, 5, 6);
    evaluated.Evaluate(true);
    for (const double later : evaluated.TrainSteps(2, 7, 8)) losses.push_back(later);
    EXPECT_THAT(losses, ElementsAreArray(plain.Train(2)));
    EXPECT_THAT(evaluated.Values(), ElementsAreArray(plain.Values()));
    EXPECT_EQ(Digests(evaluated.sender("stem", DIRECTION_ACTIVATION).feedback().state()),
              Digests(plain.sender("stem", DIRECTION_ACTIVATION).feedback().state()));
  }
}

TEST(CompressionTest, AqSgdEvaluatesExactlyAndOthersWithThePlainCodec) {
  const auto losses = [](const std::string& feedback) {
    std::vector<std::string> overrides =
        Both(absl::StrCat("codec: topk, ratio: 0.05, feedback: ", feedback));
    Stages stages(kExperiment, overrides);
    stages.Train(1);
    return std::pair(stages.Evaluate(true).loss(), stages.Evaluate(false).loss());
  };
  const auto aq_sgd = losses("aq_sgd"), ef21 = losses("ef21"), ef = losses("ef");
  EXPECT_EQ(aq_sgd.first, aq_sgd.second);
  EXPECT_NE(ef21.first, ef21.second);
  EXPECT_NE(ef.first, ef.second);
}

}  // namespace
}  // namespace thinwire
