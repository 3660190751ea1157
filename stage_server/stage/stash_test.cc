// Checks that what blocks keep may be in a stash: N stages still train what one does, gradients are
// right in the mean, and received activations kept as their payloads change nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "stage_server/stage/late_device_testing.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;

constexpr char kExperiment[] = R"(
name: stash
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 32, limit: 64, test_limit: 10}
pipeline: {cuts: [stem, layer1, layer2], microbatches: 4, threads: 1}
compression: {activations: {codec: uniform, bits: 4}, gradients: {codec: uniform, bits: 8}}
metrics: {error_every: 2}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
epochs: 2
)";
constexpr char kFourBits[] =
    "pipeline.stash={codec: uniform, bits: 4, scope: group, group: 64, rounding: stochastic}";

struct Outcome {
  std::vector<double> losses;
  std::vector<float> values;
  uint64_t raw_bytes = 0, bytes = 0;
  double error = 0;
};

Outcome Trained(const std::vector<std::string>& overrides,
                const BackendOf& backend_of = CpuBackend) {
  Stages stages(kExperiment, overrides, backend_of);
  Outcome outcome;
  for (uint32_t epoch = 1; epoch <= 2; ++epoch) {
    for (const double loss : stages.Train(epoch)) outcome.losses.push_back(loss);
    stages.Evaluate(/*compressed=*/true);
  }
  outcome.values = stages.Values();
  double tensors = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    const BoundaryStatistics counts = stages.stage(i).stash().all();
    outcome.raw_bytes += counts.train.raw_bytes;
    outcome.bytes += counts.train.payload_bytes;
    outcome.error += counts.errors.relative_error;
    tensors += static_cast<double>(counts.errors.messages);
  }
  if (tensors > 0) outcome.error /= tensors;
  return outcome;
}

void ExpectSame(const Outcome& a, const Outcome& b) {
  EXPECT_THAT(b.losses, ElementsAreArray(a.losses));
  EXPECT_TRUE(b.values == a.values) << "parameters differ";
  EXPECT_EQ(b.raw_bytes, a.raw_bytes);
  EXPECT_EQ(b.bytes, a.bytes);
  EXPECT_NEAR(b.error, a.error, 1e-9);
}

Backend LateBackend(int /*stage*/) { return NewLateBackend(); }

TEST(StashTest, StagesAndSchedulesChangeNothing) {
  for (const char* stash :
       {kFourBits, "pipeline.stash={codec: uniform, bits: 2, rounding: stochastic}",
        "pipeline.stash={lossless: entropy}"}) {
    SCOPED_TRACE(stash);
    const Outcome one = Trained({stash, "pipeline.stages=1"});
    EXPECT_GT(one.raw_bytes, one.bytes);
    for (const char* schedule : {"gpipe", "1f1b", "zero_bubble"}) {
      SCOPED_TRACE(schedule);
      ExpectSame(one, Trained({stash, absl::StrCat("pipeline.schedule=", schedule)}));
    }
    ExpectSame(one, Trained({stash, "pipeline.stages=2", "pipeline.schedule=interleaved"}));
    SCOPED_TRACE("on a device that is not the host");
    ExpectSame(one, Trained({stash}, LateBackend));
  }
}

TEST(StashTest, ALosslessStashChangesNothing) {
  const Outcome plain = Trained({});
  const Outcome stashed = Trained({"pipeline.stash={lossless: entropy}"});
  EXPECT_THAT(stashed.losses, ElementsAreArray(plain.losses));
  EXPECT_TRUE(stashed.values == plain.values);
  EXPECT_EQ(plain.raw_bytes, 0u);
  EXPECT_EQ(stashed.error, 0);
  EXPECT_NE(Trained({kFourBits}).losses, plain.losses);
}

TEST(StashTest, RecomputedBlocksStashTheirInputs) {
  const std::string recompute = "pipeline.recompute=blocks";
  const Outcome kept = Trained({kFourBits}), again = Trained({kFourBits, recompute});
  EXPECT_LT(again.raw_bytes, kept.raw_bytes);
  ExpectSame(again, Trained({kFourBits, recompute, "pipeline.stages=1"}));
}

TEST(StashTest, MixturesOfBlocksThatLoseNothingChangeNothing) {
  const Outcome plain = Trained({});
  const std::string keep = "pipeline.keep={stem: keep, layer1.0: recompute, layer2.0: stash}";
  const std::string more = "pipeline.keep={stem: stash, layer1.0: keep, layer3.0: recompute}";
  for (const char* schedule : {"gpipe", "1f1b", "zero_bubble"}) {
    SCOPED_TRACE(schedule);
    for (const std::string& mixture : {keep, more}) {
      SCOPED_TRACE(mixture);
      const std::vector<std::string> mixed = {"pipeline.stash={lossless: entropy}", mixture,
                                              absl::StrCat("pipeline.schedule=", schedule)};
      const Outcome four = Trained(mixed);
      EXPECT_THAT(four.losses, ElementsAreArray(plain.losses));
      EXPECT_TRUE(four.values == plain.values);
      EXPECT_GT(four.raw_bytes, 0u);
    }
  }
}

TEST(StashTest, AMixtureWithALossyStashIsTheSameOnAnyStages) {
  const std::string keep =
      "pipeline.keep={stem: keep, layer1.0: recompute, layer2.0: stash, layer3.0: keep}";
  const Outcome one = Trained({kFourBits, keep, "pipeline.stages=1"});
  EXPECT_LT(one.raw_bytes, Trained({kFourBits}).raw_bytes);
  ExpectSame(one, Trained({kFourBits, keep}));
  ExpectSame(one, Trained({kFourBits, keep, "pipeline.schedule=gpipe"}));
  ExpectSame(one, Trained({kFourBits, keep, "pipeline.stages=2", "pipeline.schedule=interleaved"}));
  ExpectSame(one, Trained({kFourBits, keep}, LateBackend));
}

TEST(StashTest, PayloadsOfReceivedActivationsChangeNothing) {
  for (const char* activations :
       {"codec: uniform, bits: 4", "codec: topk, ratio: 0.1, feedback: ef",
        "codec: topk, ratio: 0.1, feedback: {kind: aq_sgd, digest_every: 1}",
        "codec: ecsq, rotation: principal, rotation_every: 2", "codec: uniform, outliers: 2"}) {
    SCOPED_TRACE(activations);
    const std::string codec = absl::StrCat("compression.activations={", activations, "}");
    const Outcome decoded = Trained({codec, "pipeline.received=decoded"});
    ExpectSame(decoded, Trained({codec}));
    ExpectSame(decoded, Trained({codec}, LateBackend));
  }
}

TEST(StashTest, PayloadsChangeNothingUnderOtherSchedules) {
  const Outcome decoded = Trained({"pipeline.received=decoded"});
  for (const char* more :
       {"pipeline.schedule=gpipe", "pipeline.schedule=zero_bubble", "pipeline.recompute=blocks"}) {
    SCOPED_TRACE(more);
    ExpectSame(decoded, Trained({more}));
  }
}

// A network of linear layers: the gradients of its inputs do not depend on them.
constexpr char kLinear[] = R"(
name: linear
model:
  name: custom
  blocks:
    - {name: first, layers: [{kind: flatten}, {kind: linear, name: fc, out: 64}]}
    - {name: second, layers: [{kind: linear, name: fc, out: 48}]}
    - {name: third, layers: [{kind: linear, name: fc, out: 10}]}
data: {name: digits, batch_size: 32, limit: 64, test_limit: 10}
pipeline: {cuts: none, threads: 1}
optimizer: {name: sgd, lr: 0.05}
epochs: 1
)";

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += (a[i] - b[i]) * (a[i] - b[i]);
    norm += a[i] * a[i];
  }
  return std::sqrt(sum / norm);
}

TEST(StashTest, GradientsOfLinearLayersAreRightInTheMean) {
  const std::vector<float> exact = Stages(kLinear, {}).Gradients(/*batch=*/1, true);
  std::vector<float> mean(exact.size());
  constexpr int kSeeds = 100;
  double once = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const std::vector<float> gradients =
        Stages(kLinear, {"pipeline.stash={codec: uniform, bits: 2, rounding: stochastic}",
                         absl::StrCat("seeds.codec=", seed)})
            .Gradients(/*batch=*/1, true);
    if (seed == 1) once = Distance(exact, gradients);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += gradients[i] / kSeeds;
  }
  EXPECT_GT(once, 0.05);
  EXPECT_LT(Distance(exact, mean), 1.5 * once / std::sqrt(kSeeds));
}

}  // namespace
}  // namespace thinwire
