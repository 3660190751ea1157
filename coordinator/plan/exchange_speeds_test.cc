#include <string>
#include <vector>

#include "config/experiment.h"
#include "config/specs.h"
#include "coordinator/plan/run_speeds.h"
#include "gtest/gtest.h"
#include "models/model.h"

namespace thinwire {
namespace {

// The uncut model has one segment, and no running statistics.
constexpr char kExperiment[] = R"(
name: ran
model: {name: gpt2, layers: 1, heads: 2, width: 64}
data: {name: shakespeare, context: 8, batch_size: 12}
pipeline: {cuts: none, microbatches: 1}
replicas: {count: 3, contributions: {codec: uniform, bits: 8}, average: {codec: uniform, bits: 4}}
optimizer: {lr: 0.1}
epochs: 1
)";

// Elements on which codecs act, the weights, and others.
struct Sizes {
  double coded = 0, exact = 0;
};
Sizes SizesOf(const Experiment& experiment) {
  const Model model = *ModelFrom(experiment);
  Sizes sizes;
  for (const BlockSpec& block : model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      if (!parameter.tied_to.empty()) continue;
      const bool is_coded = parameter.shape.rank() > 1 && parameter.shape.elements() >= 4096;
      (is_coded ? sizes.coded : sizes.exact) += static_cast<double>(parameter.shape.elements());
    }
  }
  return sizes;
}

// Returns the codings of a run with ten exchanges, whose codec takes 1 ns a byte to encode, 2 ns to
// decode and a quarter of the bytes.
std::map<Coding, CodingSpeed> CodingsOfRun(const std::vector<std::string>& overrides, int carriers,
                                           double decodes_of_contribution) {
  const Experiment ran = *ParseExperiment(kExperiment, "test", overrides);
  const Sizes sizes = SizesOf(ran);
  const bool gathers = ran.replicas().exchange() == "gather";
  Summary summary;
  ReplicasRecord* replicas = summary.mutable_replicas();
  replicas->set_carriers(static_cast<uint32_t>(carriers));
  const ReplicasSpec spec = *ReplicasFrom(ran);
  const auto fill = [&](const DirectionSpec& does, double receivers, double encodes, double decodes,
                        DirectionRecord* record) {
    record->set_parameters(does.codec.ToString());
    record->set_feedback(does.feedback.ToString());
    const double bytes = 10 * 4 * sizes.coded, exact = 10 * 4 * sizes.exact;
    record->set_raw_bytes(static_cast<uint64_t>(receivers * (bytes + exact)));
    record->set_payload_bytes(static_cast<uint64_t>(receivers * (bytes / 4 + exact)));
    record->set_encode_seconds(1e-9 * bytes * encodes);
    record->set_decode_seconds(2e-9 * bytes * decodes);
  };
  fill(spec.contributions, gathers ? 6 : 2, 3, decodes_of_contribution,
       replicas->mutable_contributions());
  if (!gathers) fill(spec.average, 2, 1, carriers, replicas->mutable_average());
  std::map<Coding, CodingSpeed> codings;
  EXPECT_TRUE(AddExchangeSpeeds(summary, ran, &codings).ok());
  return codings;
}

void ExpectSpeeds(const std::map<Coding, CodingSpeed>& codings, size_t count) {
  ASSERT_EQ(codings.size(), count);
  for (const auto& [coding, speed] : codings) {
    EXPECT_EQ(coding.cut, kReplicas);
    EXPECT_NEAR(speed.encode_seconds_per_byte, 1e-9, 1e-12) << coding.codec;
    EXPECT_NEAR(speed.decode_seconds_per_byte, 2e-9, 1e-12) << coding.codec;
    EXPECT_NEAR(speed.payload_per_byte, 0.25, 1e-4) << coding.codec;
  }
}

TEST(ExchangeSpeedsTest, SecondsAreOfTheBytesThatMachinesEncodedAndDecoded) {
  for (const int carriers : {1, 3}) {
    ExpectSpeeds(CodingsOfRun({}, carriers, /*decodes_of_contribution=*/3), 2);
    ExpectSpeeds(CodingsOfRun({"replicas.exchange=gather"}, carriers, 3 * carriers), 1);
  }
  // With feedback nobody decodes what it encodes.
  ExpectSpeeds(CodingsOfRun({"replicas.contributions.feedback=ef"}, 3, 2), 2);
}

TEST(ExchangeSpeedsTest, WhatFactorsBecomeIsDecodedBehindTheirSums) {
  for (const int carriers : {1, 3}) {
    ExpectSpeeds(
        CodingsOfRun({"replicas.contributions={codec: low_rank, rank: 2}", "model.tied=false"},
                     carriers, /*decodes_of_contribution=*/0.1),
        1);
  }
}

TEST(ExchangeSpeedsTest, CodecsThatDecodedNothingOrOnlyOfSomeSegmentsAreLeftOut) {
  ExpectSpeeds(CodingsOfRun({"replicas.contributions.feedback=ef"}, 1, 0), 1);
  EXPECT_TRUE(
      CodingsOfRun({"replicas.stages={head: {contributions: {codec: none}}}"}, 3, 3).empty());
  EXPECT_TRUE(CodingsOfRun({"replicas.count=1"}, 1, 1).empty());
}

}  // namespace
}  // namespace thinwire
