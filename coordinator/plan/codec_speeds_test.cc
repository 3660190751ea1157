#include "coordinator/plan/codec_speeds.h"

#include "absl/strings/str_cat.h"
#include "config/experiment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kExperiment[] = R"(
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 20}
pipeline: {cuts: [layer1, layer2], microbatches: 2}
optimizer: {lr: 0.1}
epochs: 2
)";

Experiment With(const std::vector<std::string>& overrides) {
  const auto experiment = ParseExperiment(kExperiment, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

using Codings = std::map<Coding, CodingSpeed>;

Codings Measured(const Experiment& experiment) {
  Codings codings;
  const absl::Status status = MeasureCodings(experiment, &codings);
  EXPECT_TRUE(status.ok()) << status;
  return codings;
}

TEST(MeasureCodingsTest, MeasuresThoseOfEachCutAndDirectionThatCodes) {
  EXPECT_THAT(Measured(With({})), IsEmpty());
  const Codings codings = Measured(With({"compression.gradients={codec: uniform, bits: 4}"}));
  ASSERT_EQ(codings.size(), 2u);
  const Coding &first = codings.begin()->first, &second = codings.rbegin()->first;
  EXPECT_EQ(first.cut, "layer1");
  EXPECT_TRUE(first.gradient);
  EXPECT_THAT(first.codec, StartsWith("uniform(bits=4"));
  EXPECT_EQ(second.cut, "layer2");
}

TEST(MeasureCodingsTest, EveryKindOfCodecTakesTimeAndSendsSomething) {
  for (const char* direction :
       {"codec: fp16", "codec: uniform, bits: 4", "codec: topk, ratio: 0.1, feedback: ef21",
        "codec: topk, ratio: 0.1, feedback: {kind: aq_sgd, limit_bytes: 1, on_full: plain}",
        "codec: topk, ratio: 0.1, feedback: ef_mixed_b", "codec: low_rank, rank: 2",
        "codec: uniform, bits: 4, lossless: entropy",
        "codec: uniform, bits: 4, level: {by_epoch: {2: 8}}"}) {
    const Codings codings = Measured(With({absl::StrCat("compression.gradients={", direction, "}"),
                                           "compression.activations={codec: topk, ratio: 0.5}"}));
    EXPECT_EQ(codings.size(), 4u) << direction;
    for (const auto& [coding, speed] : codings) {
      EXPECT_THAT(speed, AllOf(Field(&CodingSpeed::encode_seconds_per_byte, Gt(0)),
                               Field(&CodingSpeed::decode_seconds_per_byte, Gt(0)),
                               Field(&CodingSpeed::payload_per_byte, Gt(0))))
          << coding.cut << " " << coding.codec;
    }
  }
}

TEST(MeasureCodingsTest, CodecsThatNeedWhatWasReceivedGetIt) {
  const Codings codings = Measured(
      With({"compression.activations={codec: topk, ratio: 0.1}",
            "compression.gradients={codec: uniform, bits: 8, support: received_nonzero}"}));
  for (const auto& [coding, speed] : codings) {
    // Half of the entries, those that were positive before the ReLU, at 8 of 32 bits.
    if (!coding.gradient) continue;
    EXPECT_NEAR(speed.payload_per_byte, 0.5 * 8 / 32, 0.03) << coding.cut;
  }
}

TEST(MeasureCodingsTest, ActivationsBehindAReluAreHalfZerosAndGradientsAreNot) {
  const Codings codings = Measured(With({"compression.activations={codec: topk, ratio: 0.9}",
                                         "compression.gradients={codec: topk, ratio: 0.9}"}));
  for (const auto& [coding, speed] : codings) {
    EXPECT_NEAR(speed.payload_per_byte, coding.gradient ? 0.93 : 0.53, 0.04) << coding.cut;
  }
}

TEST(MeasureCodingsTest, WhatIsKnownIsNotMeasuredAgain) {
  const Experiment experiment = With({"compression.gradients={codec: uniform, bits: 4}"});
  Codings codings = Measured(experiment);
  for (auto& [coding, speed] : codings) speed = {1, 2, 3};
  ASSERT_TRUE(MeasureCodings(experiment, &codings).ok());
  for (const auto& [coding, speed] : codings) EXPECT_EQ(speed.encode_seconds_per_byte, 1);
}

TEST(MeasureCodingsTest, TheTiedWeightsGradientsAreMeasuredToo) {
  const Codings codings = Measured(*ParseExperiment(R"(
model: {name: gpt2, layers: 2, heads: 2, width: 16}
data: {name: shakespeare, context: 16, batch_size: 6}
pipeline: {cuts: [h.0], microbatches: 2}
compression: {boundaries: {tied: {gradients: {codec: fp16}}}}
precision: bf16
optimizer: {lr: 0.01}
epochs: 2
)",
                                                    "test", {}));
  ASSERT_EQ(codings.size(), 1u);
  EXPECT_EQ(codings.begin()->first.cut, "tied");
}

// Tests a codec that needs to know what values occur: two contributions of one bit average to
// three.
TEST(MeasureCodingsTest, AveragesAreThoseOfCodedContributions) {
  const Codings codings =
      Measured(With({"replicas={count: 2, contributions: {codec: uniform, bits: 1}, "
                     "average: {codec: topk, ratio: 0.9, lossless: zstd}}",
                     "data.batch_size=40"}));
  const Codings exact =
      Measured(With({"replicas={count: 2, average: {codec: topk, ratio: 0.9, lossless: zstd}}",
                     "data.batch_size=40"}));
  ASSERT_EQ(codings.size(), 2u);
  ASSERT_EQ(exact.size(), 1u);
  EXPECT_FALSE(codings.begin()->first.gradient);
  EXPECT_TRUE(codings.rbegin()->first.gradient);
  EXPECT_EQ(codings.begin()->first.codec, exact.begin()->first.codec);
  EXPECT_THAT(codings.begin()->first.of, StartsWith("2 x uniform(bits=1"));
  EXPECT_LT(codings.begin()->second.payload_per_byte, exact.begin()->second.payload_per_byte / 2);
}

TEST(MeasureCodingsTest, SumsOfPartsAreMeasuredToo) {
  const Codings codings = Measured(*ParseExperiment(R"(
model: {name: gpt2, layers: 2, heads: 2, width: 64}
data: {name: shakespeare, context: 16, batch_size: 6}
pipeline: {cuts: [h.0], microbatches: 2}
tensor: {parts: 2}
compression: {sums: {activations: {codec: uniform, bits: 8}, gradients: {codec: fp16}}}
optimizer: {lr: 0.01}
epochs: 2
)",
                                                    "test", {}));
  ASSERT_EQ(codings.size(), 2u);
  for (const auto& [coding, speed] : codings) {
    EXPECT_EQ(coding.cut, "sums");
    EXPECT_GT(speed.encode_seconds_per_byte, 0);
    EXPECT_NEAR(speed.payload_per_byte, coding.gradient ? 0.5 : 0.25, 0.1);
  }
}

}  // namespace
}  // namespace thinwire
