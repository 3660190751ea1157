// Pipelines slices of sequences, as threads of one process. The result must be that of whole
// sequences within rounding, and that of one stage bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "stage_server/stage/stages_testing.h"

namespace thinwire {
namespace {

using ::testing::ElementsAreArray;

// An experiment whose last batch of an epoch has four of six samples.
constexpr char kGpt[] = R"(
name: slices
model: {name: gpt2, layers: 3, heads: 2, width: 16}
data: {name: shakespeare, context: 24, batch_size: 6, limit: 16, test_limit: 8}
pipeline: {cuts: [h.0, h.1], microbatches: 2, threads: 1}
optimizer: {name: sgd, lr: 0.2, momentum: 0.9, clip_norm: 1}
epochs: 2
)";
// The same with rotary positions and keys shared by heads.
constexpr char kLlama[] = R"(
name: slices
model: {name: llama, layers: 3, heads: 4, kv_heads: 2, width: 32, hidden: 48}
data: {name: shakespeare, context: 24, batch_size: 6, limit: 16, test_limit: 8}
pipeline: {cuts: [layers.0, layers.1], microbatches: 2, threads: 1}
optimizer: {name: sgd, lr: 0.2, momentum: 0.9, clip_norm: 1}
epochs: 2
)";

constexpr char kUneven[] = "[5, 16, 1, 2]";

std::vector<std::string> InSlices(const std::string& slices,
                                  std::vector<std::string> overrides = {}) {
  overrides.push_back("pipeline.schedule=terapipe");
  overrides.push_back(absl::StrCat("pipeline.slices=", slices));
  return overrides;
}

struct Trained {
  std::vector<double> losses;
  std::vector<float> values;
  double test_loss = 0;
};

Trained Train(const char* text, const std::vector<std::string>& overrides) {
  Stages stages(text, overrides);
  Trained trained;
  for (uint32_t epoch : {1, 2}) {
    for (const double loss : stages.Train(epoch)) trained.losses.push_back(loss);
  }
  trained.values = stages.Values();
  trained.test_loss = stages.Evaluate(/*compressed=*/true).loss();
  return trained;
}

void ExpectClose(const Trained& a, const Trained& b) {
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (size_t i = 0; i < a.losses.size(); ++i) EXPECT_NEAR(a.losses[i], b.losses[i], 1e-5) << i;
  ASSERT_EQ(a.values.size(), b.values.size());
  double most = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    most = std::max<double>(most, std::abs(a.values[i] - b.values[i]));
  }
  EXPECT_LT(most, 1e-5);
  EXPECT_NEAR(a.test_loss, b.test_loss, 1e-5);
}

class TeraPipeTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TeraPipeTest, TrainsWhatWholeSequencesTrain) {
  const std::string one = "pipeline.stages=1";
  const Trained whole = Train(GetParam(), {one});
  for (const char* slices : {"1", "4", "24", kUneven}) {
    SCOPED_TRACE(slices);
    ExpectClose(whole, Train(GetParam(), InSlices(slices, {one})));
  }
  ExpectClose(whole, Train(GetParam(), InSlices("4", {one, "pipeline.recompute=blocks"})));
}

TEST_P(TeraPipeTest, StagesTrainWhatOneDoes) {
  for (const char* codecs :
       {"{codec: none}", "{codec: uniform, bits: 6, scope: token, rounding: stochastic}",
        "{codec: topk, ratio: 0.5, scope: token}"}) {
    const std::vector<std::string> both =
        InSlices(kUneven, {absl::StrCat("compression.activations=", codecs),
                           absl::StrCat("compression.gradients=", codecs)});
    for (const char* microbatches : {"1", "3"}) {
      SCOPED_TRACE(absl::StrCat(codecs, " ", microbatches));
      std::vector<std::string> one = both;
      one.push_back(absl::StrCat("pipeline.microbatches=", microbatches));
      std::vector<std::string> three = one;
      one.push_back("pipeline.stages=1");
      const Trained alone = Train(GetParam(), one), together = Train(GetParam(), three);
      EXPECT_THAT(together.losses, ElementsAreArray(alone.losses));
      EXPECT_THAT(together.values, ElementsAreArray(alone.values));
      EXPECT_EQ(together.test_loss, alone.test_loss);
    }
  }
}

// Quantisation levels of a token do not depend on other tokens.
TEST_P(TeraPipeTest, ACodecOfTokensCodesSlicesAsItCodesWholeSequences) {
  const std::string codec = "compression.activations={codec: uniform, bits: 8, scope: token}";
  // Rounding may put a code at a border on either side of it.
  const Trained a = Train(GetParam(), InSlices("4", {codec})), b = Train(GetParam(), {codec});
  for (size_t i = 0; i < a.losses.size(); ++i) EXPECT_NEAR(a.losses[i], b.losses[i], 1e-3) << i;
}

INSTANTIATE_TEST_SUITE_P(Models, TeraPipeTest, ::testing::Values(kGpt, kLlama));

TEST(TeraPipeStagesTest, GradientsAreThoseOfOneStage) {
  Stages three(kGpt, InSlices("4")), one(kGpt, InSlices("4", {"pipeline.stages=1"}));
  EXPECT_THAT(three.Gradients(1, true), ElementsAreArray(one.Gradients(1, true)));
}

}  // namespace
}  // namespace thinwire
