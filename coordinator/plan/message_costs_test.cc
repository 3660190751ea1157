#include "coordinator/plan/message_costs.h"

#include <string>
#include <vector>

#include "compress/codecs/plugin.h"
#include "config/experiment.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

// At h.0 rows of 16 features cross; the head's copy of the embedding is [65, 16].
constexpr char kExperiment[] = R"(
name: costs
model: {name: gpt2, layers: 2, heads: 2, width: 16}
data: {name: shakespeare, context: 8, batch_size: 5, limit: 10}
pipeline: {cuts: [h.0], microbatches: 2}
optimizer: {lr: 0.1}
epochs: 1
)";
constexpr int kTied = 1;

Coded HalfOfThem() {
  Coded coded;
  coded.codec.kind = CodecKind::kTopK;
  coded.codec.ratio = 0.5;
  return coded;
}

class MessageCostsTest : public ::testing::Test {
 protected:
  MessageCost Of(const MessageSlot& slot, const Coded& coded = {},
                 const std::vector<std::string>& overrides = {},
                 const std::vector<int64_t>& slices = {}) const {
    const auto experiment = ParseExperiment(kExperiment, "test", overrides);
    EXPECT_TRUE(experiment.ok()) << experiment.status();
    const auto partition = PartitionFrom(*experiment);
    const auto costs = MessageCosts::New(*experiment, *partition, slices, speeds_);
    EXPECT_TRUE(costs.ok()) << costs.status();
    return *costs->Of(slot, coded);
  }

  Speeds speeds_;
};

TEST_F(MessageCostsTest, FirstMicrobatchesHaveTheSamplesThatDoNotDivide) {
  EXPECT_EQ(Of({0, false, 0}).raw_bytes, 3 * 8 * 16 * 4);
  EXPECT_EQ(Of({0, true, 1}).raw_bytes, 2 * 8 * 16 * 4);
  EXPECT_EQ(Of({0, false, 0}, {}, {"precision=bf16"}).raw_bytes, 3 * 8 * 16 * 2);
}

TEST_F(MessageCostsTest, WithoutAMeasurementACodecKeepsItsRate) {
  Coded two_bits;
  two_bits.codec.kind = CodecKind::kEcsq;
  two_bits.codec.rate = 2;
  two_bits.codec.lossless = Lossless::kEntropy;
  const MessageCost cost = Of({0, true, 0}, two_bits);
  EXPECT_GT(cost.likely_wire_bytes, cost.raw_bytes / 16);
  EXPECT_LT(cost.likely_wire_bytes, cost.raw_bytes / 16 + 150);
  EXPECT_GT(cost.wire_bytes, cost.raw_bytes);
}

TEST_F(MessageCostsTest, ASliceHasItsPositionsOfItsMicrobatch) {
  EXPECT_EQ(Of({0, false, 1}, {}, {}, {5, 3}).raw_bytes, 3 * 3 * 16 * 4);
  EXPECT_EQ(Of({0, false, 2}, {}, {}, {5, 3}).raw_bytes, 2 * 5 * 16 * 4);
}

TEST_F(MessageCostsTest, ATiedWeightsGradientIsWholeAndFp32) {
  for (const char* precision : {"precision=fp32", "precision=bf16"}) {
    EXPECT_EQ(Of({kTied, true, 0}, {}, {precision}).raw_bytes, 65 * 16 * 4);
  }
}

TEST_F(MessageCostsTest, ACodecTakesItsTimeAndWhatWasMeasuredOfItsPayload) {
  speeds_.others = {/*encode_seconds_per_byte=*/1e-9, /*decode_seconds_per_byte=*/2e-9,
                    /*payload_per_byte=*/0.1};
  const Coded coded = HalfOfThem();
  const Coding coding{"h.0", false, CodecText(coded.codec), coded.feedback.ToString()};
  speeds_.codings[coding] = {3e-9, 4e-9, 0};
  const MessageCost measured = Of({0, false, 0}, coded), other = Of({0, true, 0}, coded);
  EXPECT_DOUBLE_EQ(measured.encode_seconds, 3e-9 * measured.raw_bytes);
  EXPECT_DOUBLE_EQ(measured.decode_seconds, 4e-9 * measured.raw_bytes);
  EXPECT_EQ(measured.likely_wire_bytes, measured.wire_bytes);
  EXPECT_DOUBLE_EQ(other.encode_seconds, 1e-9 * other.raw_bytes);
  EXPECT_LT(other.likely_wire_bytes, 0.1 * other.raw_bytes + 200);
  EXPECT_GT(other.likely_wire_bytes, 0.1 * other.raw_bytes);
  EXPECT_GE(other.wire_bytes, 0.5 * other.raw_bytes);
  EXPECT_EQ(Of({0, true, 0}).encode_seconds, 0);  // codec none
}

TEST_F(MessageCostsTest, APartOfTheNormIsAHeader) {
  const auto experiment = ParseExperiment(kExperiment, "test", {});
  const auto partition = PartitionFrom(*experiment);
  const auto costs = MessageCosts::New(*experiment, *partition, {}, speeds_);
  EXPECT_GT(costs->SumBytes(0, false), 20);
  EXPECT_LT(costs->SumBytes(0, false), 150);
  EXPECT_EQ(costs->BasisBytes(0, false), 0);  // no bottleneck learns one
}

}  // namespace
}  // namespace thinwire
