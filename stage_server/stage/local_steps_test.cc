// Tests replicas that train by themselves between exchanges (replicas.sync: local). How segments
// are spread over stages may not change a bit of what they learn, nor a byte of what they exchange.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/settings_testing.h"
#include "config/experiment.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;
using ::testing::SizeIs;

// Six steps an epoch, with exchanges after steps 4 and 6. The last batch has 4 of the 104 samples,
// so that the last two of three replicas have fewer microbatches or none.
constexpr char kExperiment[] = R"(
name: local
model: {name: resnet8, width: 16}
data: {name: digits, batch_size: 20, limit: 104, test_limit: 40}
pipeline: {cuts: [stem, layer2], microbatches: 3, threads: 1}
replicas: {count: 3, sync: local, every: 4}
optimizer: {name: sgd, lr: 0.1, momentum: 0.9}
epochs: 1
)";

struct LocalSteps : Stages {
  explicit LocalSteps(const std::vector<std::string>& overrides, int carriers = 1)
      : Stages(
            kExperiment, overrides, CpuBackend, [](StageSpec*) {}, carriers) {}

  BoundaryStatistics contributions() {
    BoundaryStatistics all;
    for (size_t i = 0; i < size(); ++i) {
      all.train += stage(i).averager()->counts().Of(PHASE_CONTRIBUTION).all().train;
    }
    return all;
  }
};

class LocalStepsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(LocalStepsTest, StagesAndCarriersTrainLikeOneAndCountTheSameBytes) {
  for (const char* optimizer :
       Settings({"optimizer={name: sgd, lr: 0.1, momentum: 0.9}",
                 "optimizer={name: adamw, lr: 0.01, weight_decay: 0.1, clip_norm: 0.5}"})) {
    SCOPED_TRACE(optimizer);
    std::vector<std::string> overrides = {
        GetParam(), optimizer, "compression.gradients={codec: topk, ratio: 0.3, feedback: ef}",
        "pipeline.stages=1"};
    LocalSteps one(overrides);
    const std::vector<double> losses = one.Train();
    ASSERT_THAT(losses, SizeIs(6));
    for (const auto& [stages, carriers] :
         Settings<std::pair<int, int>>({{2, 1}, {3, 1}, {1, 3}, {2, 2}})) {
      SCOPED_TRACE(absl::StrCat(stages, " stages, ", carriers, " carriers"));
      overrides.back() = absl::StrCat("pipeline.stages=", stages);
      LocalSteps several(overrides, carriers);
      EXPECT_THAT(several.Train(), ElementsAreArray(losses));
      EXPECT_THAT(several.Values(), ElementsAreArray(one.Values()));
      EXPECT_EQ(several.contributions().train.wire_bytes, one.contributions().train.wire_bytes);
      EXPECT_EQ(several.contributions().train.elements, one.contributions().train.elements);
      EXPECT_EQ(several.Evaluate(/*compressed=*/true).loss(),
                one.Evaluate(/*compressed=*/true).loss());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, LocalStepsTest,
    ::testing::Values(
        "replicas.exchange=reduce",
        "replicas={contributions: {codec: ecsq, rate: 2, feedback: ef}, average: {codec: uniform}}",
        "replicas={contributions: {codec: topk, ratio: 0.05, feedback: ef}, exchange: gather}",
        "replicas={contributions: {codec: ecsq, rate: 2, feedback: ef}, average: {codec: uniform}, "
        "stages: {layer2: {contributions: {codec: topk, ratio: 0.1}}, "
        "head: {contributions: {codec: none}, average: {codec: none}}}}",
        "replicas={fragments: 2}",
        "replicas={every: 4, fragments: 2, overlap: 1, contributions: {codec: low_rank, rank: 2, "
        "feedback: ef}}",
        "replicas={every: 4, fragments: 2, overlap: 1, contributions: {codec: ecsq, rate: 2, "
        "feedback: ef}}"));

// The largest of the differences of two lists of values.
double Furthest(const std::vector<float>& a, const std::vector<float>& b) {
  double furthest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    furthest = std::max<double>(furthest, std::abs(a[i] - b[i]));
  }
  return furthest;
}

// Replicas of equally many samples that take one step of plain SGD each, and then the mean of their
// parameters, are one step of SGD with the mean of their gradients.
TEST(LocalStepsTest, OneStepOfSgdAndTheMeanAreAStepWithTheMeanGradient) {
  const std::vector<std::string> same = {"data.limit=72", "data.batch_size=18", "pipeline.stages=1",
                                         "optimizer.momentum=0"};
  const auto with = [&](const std::string& replicas) {
    std::vector<std::string> all = same;
    all.push_back(replicas);
    return all;
  };
  LocalSteps step(with("replicas={count: 3, sync: step}"));
  LocalSteps local(with("replicas={count: 3, every: 1, outer: {name: sgd}}"));
  const std::vector<double> losses = step.Train();
  ASSERT_THAT(losses, SizeIs(4));
  EXPECT_THAT(local.Train(), Pointwise(::testing::DoubleNear(1e-4), losses));
  EXPECT_LT(Furthest(local.Values(), step.Values()), 1e-4);
  EXPECT_EQ(local.contributions().train.elements, step.contributions().train.elements);
}

// With one replica, an outer step of rate 1 returns to where the replica has come.
TEST(LocalStepsTest, OneReplicaTrainsLikeNone) {
  const std::vector<std::string> same = {"pipeline.stages=1"};
  Stages none(kExperiment, {"pipeline.stages=1", "replicas={sync: step, count: 1}"});
  LocalSteps one({"pipeline.stages=1", "replicas={count: 1, outer: {name: sgd}}"});
  EXPECT_THAT(one.Train(), Pointwise(::testing::DoubleNear(1e-4), none.Train()));
  EXPECT_LT(Furthest(one.Values(), none.Values()), 1e-4);
  EXPECT_EQ(one.contributions().train.messages, 0u);
}

TEST(LocalStepsTest, OnlyTheLastStepOfARoundExchanges) {
  LocalSteps three({"pipeline.stages=1"});
  const std::vector<float> start = three.Values();
  three.TrainSteps(1, 1, 3);
  EXPECT_EQ(three.contributions().train.wire_bytes, 0u);
  EXPECT_THAT(three.Values(), ElementsAreArray(start));  // what others see are shared values
  three.TrainSteps(1, 4, 4);
  const uint64_t once = three.contributions().train.wire_bytes;
  EXPECT_GT(once, 0u);
  EXPECT_GT(three.stage(0).local()->drift(), 0.01);
  EXPECT_LT(three.stage(0).local()->drift(), 1);
  EXPECT_NE(three.Values(), start);
  three.TrainSteps(1, 5, 6);  // the epoch ends, and with it a shorter round
  EXPECT_EQ(three.contributions().train.wire_bytes, 2 * once);
}

// Fragment 1 is sent after step 2, which changes the shared values, and taken after step 3.
TEST(LocalStepsTest, AnEvaluationWithinARoundIsOfTheSharedValuesAndChangesNothing) {
  const std::vector<std::string> overrides = {"pipeline.stages=2",
                                              "replicas={fragments: 2, overlap: 1}"};
  LocalSteps plain(overrides), evaluated(overrides), apart(overrides, /*carriers=*/3);
  const double before = evaluated.Evaluate(/*compressed=*/true).loss();
  std::vector<double> losses;
  for (const uint64_t step : {1, 2, 3, 4, 5, 6}) {
    losses.push_back(evaluated.TrainSteps(1, step, step).at(0));
    const double after = evaluated.Evaluate(/*compressed=*/true).loss();
    EXPECT_EQ(after == before, step < 2) << step;
    apart.TrainSteps(1, step, step);
    EXPECT_EQ(apart.Evaluate(/*compressed=*/true).loss(), after) << step;
  }
  EXPECT_THAT(losses, ElementsAreArray(plain.Train()));
  EXPECT_THAT(evaluated.Values(), ElementsAreArray(plain.Values()));
  EXPECT_THAT(apart.Values(), ElementsAreArray(plain.Values()));
}

// Returns the values of a list of parameters, those that are trained or the others.
std::vector<float> ValuesOf(const std::vector<Parameter>& parameters, bool trainable) {
  std::vector<float> all;
  for (const Parameter& parameter : parameters) {
    if (parameter.spec.is_trained() != trainable) continue;
    const auto floats = parameter.value.floats();
    all.insert(all.end(), floats.begin(), floats.end());
  }
  return all;
}

// A stage that stops before the exchange has what each replica learned; another one goes on to it.
TEST(LocalStepsTest, AnExchangeIsAStepOfNesterovOnTheMeanAndAMeanOfStatistics) {
  LocalSteps before({"pipeline.stages=1", "replicas.every=100"});
  LocalSteps after({"pipeline.stages=1"});
  const LocalReplicas& start = *before.stage(0).local();
  const std::vector<float> shared = ValuesOf(start.Values(0), /*trainable=*/true);
  before.TrainSteps(1, 1, 4);
  after.TrainSteps(1, 1, 4);
  std::vector<float> want(shared.size());
  std::vector<double> statistics;
  for (const int replica : {0, 1, 2}) {
    const std::vector<float> own = ValuesOf(start.Values(replica), /*trainable=*/true);
    for (size_t i = 0; i < want.size(); ++i) want[i] += shared[i] - own[i];
    const std::vector<float> means = ValuesOf(start.Values(replica), /*trainable=*/false);
    statistics.resize(means.size());
    for (size_t i = 0; i < means.size(); ++i) statistics[i] += means[i] / 3.0;
  }
  // The velocity begins as the mean difference d, so that the step is 0.7 (d + 0.9 d).
  for (size_t i = 0; i < want.size(); ++i) want[i] = shared[i] - 0.7f * 1.9f * want[i] / 3;
  const std::vector<Parameter> result = after.stage(0).local()->Values(1);
  EXPECT_THAT(ValuesOf(result, true), Pointwise(FloatNear(1e-5), want));
  const std::vector<float> means = ValuesOf(result, false);
  ASSERT_EQ(means.size(), statistics.size());
  for (size_t i = 0; i < means.size(); ++i) EXPECT_NEAR(means[i], statistics[i], 1e-5);
}

// Fragment 1 is exchanged after step 2; its result is taken after step 3.
TEST(LocalStepsTest, AFragmentIsTakenWhenItsOverlapHasPassed) {
  const std::vector<std::string> overrides = {
      "pipeline.stages=1", "replicas={fragments: 2, overlap: 1, mix: 0.25, outer: {name: sgd}}"};
  LocalSteps late(overrides), never({"pipeline.stages=1", "replicas.every=100"});
  late.TrainSteps(1, 1, 2);
  never.TrainSteps(1, 1, 2);
  const LocalReplicas &with = *late.stage(0).local(), &without = *never.stage(0).local();
  for (const int replica : {0, 1, 2}) {
    EXPECT_THAT(ValuesOf(with.Values(replica), true),
                ElementsAreArray(ValuesOf(without.Values(replica), true)));
  }
  const std::vector<const Parameter*> shared = late.stage(0).parameters();
  const std::vector<const Parameter*> start = never.stage(0).parameters();
  late.TrainSteps(1, 3, 3);
  never.TrainSteps(1, 3, 3);
  size_t moved = 0;
  for (size_t i = 0; i < shared.size(); ++i) {
    const auto values = shared[i]->value.floats(), before = start[i]->value.floats();
    const bool is_in_fragment = !std::equal(values.begin(), values.end(), before.begin());
    moved += is_in_fragment;
    const std::vector<Parameter> own = with.Values(2), alone = without.Values(2);
    for (size_t j = 0; j < values.size(); ++j) {
      const float by_itself = alone[i].value.floats()[j];
      const float want = is_in_fragment ? 0.25f * by_itself + 0.75f * values[j] : by_itself;
      ASSERT_NEAR(own[i].value.floats()[j], want, 1e-5) << shared[i]->spec.name;
    }
  }
  EXPECT_GT(moved, 0u);
  EXPECT_LT(moved, shared.size() / 2);
}

constexpr char kText[] = R"(
name: local
model: {name: gpt2, width: 64, layers: 2, heads: 2}
data: {name: shakespeare, batch_size: 6, context: 16, windows: 29, test_limit: 2}
pipeline: {cuts: [h.0], microbatches: 1, threads: 1}
replicas: {count: 3, sync: local, every: 3}
optimizer: {name: muon, lr: 0.02, adamw_lr: 0.01, clip_norm: 0.5}
epochs: 1
)";

std::vector<float> Named(LocalStage& stage, const std::string& name) {
  for (const Parameter* parameter : stage.parameters()) {
    const auto floats = parameter->value.floats();
    if (parameter->spec.name == name) return std::vector<float>(floats.begin(), floats.end());
  }
  return {};
}

TEST(LocalStepsTest, BothCopiesOfATiedWeightStayEqual) {
  const std::string coded =
      "replicas={contributions: {codec: uniform, bits: 4, rounding: stochastic}, average: {codec: "
      "uniform, bits: 8}}";
  Stages one(kText, {coded, "pipeline.stages=1"}), two(kText, {coded});
  EXPECT_THAT(two.Train(), ElementsAreArray(one.Train()));
  EXPECT_THAT(two.Values(), ElementsAreArray(one.Values()));
  const TiedWeight tied = *two.stage(0).spec().tied;
  ASSERT_THAT(Named(two.stage(0), tied.name), SizeIs(65 * 64));
  EXPECT_THAT(Named(two.stage(1), tied.copy), ElementsAreArray(Named(two.stage(0), tied.name)));
  // The uncut model has both in one memory.
  Stages uncut(kText, {coded, "pipeline.cuts=none", "pipeline.stages=1"});
  EXPECT_THAT(uncut.Train(), Each(::testing::Gt(1)));
}

TEST(LocalStepsTest, ALearnedBasisStaysOrthonormalAndTheSameOnBothSides) {
  const std::vector<std::string> overrides = {
      "compression.bottleneck={kind: learned_subspace, width: 3, basis_rate: 1}"};
  Stages two(kText, overrides);
  two.Train();
  std::vector<std::vector<float>> bases;
  for (size_t i = 0; i < two.size(); ++i) {
    for (const Parameter* parameter : two.stage(i).parameters()) {
      if (!parameter->spec.orthonormal) continue;
      ASSERT_EQ(parameter->value.shape()[0], 3);
      const auto floats = parameter->value.floats();
      bases.emplace_back(floats.begin(), floats.end());
    }
  }
  ASSERT_THAT(bases, SizeIs(2));
  EXPECT_EQ(bases[0], bases[1]);
  const int64_t n = static_cast<int64_t>(bases[0].size()) / 3;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const double product = std::inner_product(
          bases[0].begin() + i * n, bases[0].begin() + (i + 1) * n, bases[0].begin() + j * n, 0.0);
      EXPECT_NEAR(product, i == j ? 1 : 0, 1e-5);
    }
  }
}

}  // namespace
}  // namespace thinwire
