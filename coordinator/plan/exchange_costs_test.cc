#include "coordinator/plan/exchange_costs.h"

#include <set>
#include <string>
#include <vector>

#include "compress/codecs/plugin.h"
#include "config/experiment.h"
#include "config/owned_pieces.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

constexpr char kExperiment[] = R"(
model: {name: gpt2, layers: 2, heads: 2, width: 64}
data: {name: shakespeare, context: 8, batch_size: 12}
pipeline: {cuts: [h.0], microbatches: 1}
replicas: {count: 4}
optimizer: {lr: 0.1}
epochs: 1
)";

Experiment With(const std::vector<std::string>& overrides) {
  const auto experiment = ParseExperiment(kExperiment, "test", overrides);
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  return *experiment;
}

ExchangeCosts CostsOf(const std::vector<std::string>& overrides, int carriers,
                      const Speeds& speeds = {}) {
  const auto costs = CostsOfExchange(With(overrides), carriers, {}, speeds, /*exactly=*/false);
  EXPECT_TRUE(costs.ok()) << costs.status();
  return *costs;
}

int64_t ElementsOf(const std::vector<std::string>& overrides) {
  const Partition partition = *PartitionFrom(With(overrides));
  int64_t elements = 0;
  std::set<uint32_t> numbers;
  for (int stage = 0; stage < partition.placement.stages; ++stage) {
    for (const OwnedPiece& piece : PiecesOfStage(partition, stage, /*replicas=*/4)) {
      elements += piece.piece.shape.elements();
      EXPECT_TRUE(numbers.insert(piece.number).second) << piece.number;
      EXPECT_GE(piece.owner, 0);
      EXPECT_LT(piece.owner, 4);
    }
  }
  return elements;
}

TEST(ExchangeCostsTest, EveryTrainedParameterIsExchangedAndACopyWhereItHasMemoryOfItsOwn) {
  const int64_t all = TrainableParameters(PartitionFrom(With({}))->model);
  EXPECT_EQ(ElementsOf({"pipeline.cuts=none"}), all);
  EXPECT_EQ(ElementsOf({}), all + 65 * 64);
  EXPECT_EQ(ElementsOf({"pipeline.stages=1"}), all + 65 * 64);
}

TEST(ExchangeCostsTest, AContributionGoesToItsOwnerAndASumToAllOthers) {
  const int64_t bytes = 4 * ElementsOf({});
  const ExchangeCosts four = CostsOf({}, 4);
  EXPECT_EQ(four.contributions.cost.raw_bytes, 3 * bytes);
  EXPECT_EQ(four.sums.cost.raw_bytes, 3 * bytes);
  EXPECT_EQ(four.contributions.messages, four.sums.messages);
  EXPECT_GT(four.sums.cost.wire_bytes, 3 * bytes);
  double sent = 0;
  for (int stage = 0; stage < 2; ++stage) {
    for (int carrier = 0; carrier < 4; ++carrier) {
      sent += SentBytes(four.exchange, stage, carrier);
    }
  }
  EXPECT_EQ(sent, four.contributions.cost.wire_bytes + four.sums.cost.wire_bytes);
  const ExchangeCosts two = CostsOf({}, 2);
  EXPECT_EQ(two.contributions.cost.raw_bytes, 2 * bytes);  // two replicas are at their owner's
  EXPECT_EQ(two.sums.cost.raw_bytes, bytes);
  const ExchangeCosts one = CostsOf({}, 1);
  EXPECT_EQ(one.contributions.messages + one.sums.messages, 0);
  const ExchangeCosts gathered = CostsOf({"replicas.exchange=gather"}, 4);
  EXPECT_EQ(gathered.contributions.cost.raw_bytes, 4 * 3 * bytes);
  EXPECT_EQ(gathered.sums.messages, 0);
}

TEST(ExchangeCostsTest, RunningStatisticsGoToAllAsTheyAre) {
  const Experiment images = *ParseExperiment(R"(
model: {name: resnet8, width: 8}
data: {name: digits, batch_size: 32}
pipeline: {cuts: [layer1]}
replicas: {count: 4, contributions: {codec: fp16}}
optimizer: {lr: 0.1}
epochs: 1
)",
                                             "test", {});
  const Partition partition = *PartitionFrom(images);
  int64_t trained = 0, statistics = 0;
  for (const BlockSpec& block : partition.model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      (parameter.is_trained() ? trained : statistics) += parameter.shape.elements();
    }
  }
  EXPECT_GT(statistics, 0);
  const auto costs = CostsOfExchange(images, 4, {}, Speeds(), /*exactly=*/false);
  EXPECT_EQ(costs->contributions.cost.raw_bytes, 4 * (3 * trained + 4 * 3 * statistics));
  EXPECT_EQ(costs->sums.cost.raw_bytes, 4 * 3 * trained);
  EXPECT_TRUE(costs->exchange.pieces[0].back().gathers);
}

TEST(ExchangeCostsTest, CodecsActOnPiecesThatTakeThem) {
  const std::string half = "replicas.contributions={codec: fp16}";
  const ExchangeCosts costs = CostsOf({half}, 4);
  const MessageCost& sent = costs.contributions.cost;
  EXPECT_GT(sent.wire_bytes, sent.raw_bytes / 2);
  EXPECT_LT(sent.wire_bytes, 0.53 * static_cast<double>(sent.raw_bytes));
  EXPECT_GT(costs.sums.cost.wire_bytes, costs.sums.cost.raw_bytes);
  const auto exact = CostsOfExchange(With({half}), 4, {}, Speeds(), /*exactly=*/true);
  EXPECT_EQ(exact->contributions.cost.wire_bytes, CostsOf({}, 4).contributions.cost.wire_bytes);
}

// Its two copies must decode to the same bits.
TEST(ExchangeCostsTest, ThroughLowRankATiedWeightGoesExactly) {
  const std::string low = "replicas.contributions={codec: low_rank, rank: 1}";
  const int64_t tied = CostsOf({low}, 4).contributions.cost.wire_bytes;
  const int64_t untied = CostsOf({low, "model.tied=false"}, 4).contributions.cost.wire_bytes;
  EXPECT_GT(tied - untied, 2 * 3 * 4 * (65 * 64 - 2 * (65 + 64)));
}

TEST(ExchangeCostsTest, LowRankIsReducedByFactors) {
  const std::vector<std::string> low = {"replicas.contributions={codec: low_rank, rank: 2}",
                                        "replicas.average={codec: fp16}", "model.tied=false"};
  const ExchangeCosts costs = CostsOf(low, 4);
  const ExchangeCosts exact = CostsOf({"model.tied=false"}, 4);
  EXPECT_EQ(costs.contributions.cost.raw_bytes, exact.contributions.cost.raw_bytes);
  EXPECT_EQ(costs.sums.cost.raw_bytes, exact.sums.cost.raw_bytes);
  EXPECT_EQ(costs.sums.messages, costs.contributions.messages);
  EXPECT_LT(costs.sums.cost.wire_bytes, exact.sums.cost.wire_bytes / 5);
  int factored = 0;
  double sent = 0;
  for (int stage = 0; stage < 2; ++stage) {
    for (const PieceCost& piece : costs.exchange.pieces[stage]) factored += piece.has_second();
    for (int carrier = 0; carrier < 4; ++carrier) {
      sent += SentBytes(costs.exchange, stage, carrier);
    }
  }
  EXPECT_EQ(costs.sums.messages, exact.sums.messages + 3 * factored);
  EXPECT_EQ(sent, costs.contributions.cost.wire_bytes + costs.sums.cost.wire_bytes);
  const ExchangeCosts gathered = CostsOf({low[0], low[2], "replicas.exchange=gather"}, 4);
  EXPECT_EQ(gathered.contributions.messages, 4 * exact.contributions.messages);
}

TEST(ExchangeCostsTest, TheSpeedOfTheCodingCounts) {
  const std::vector<std::string> coded = {"replicas.contributions={codec: uniform, bits: 8}"};
  const ReplicasSpec replicas = *ReplicasFrom(With(coded));
  Speeds speeds;
  speeds.codings[{kReplicas, true, CodecText(replicas.contributions.codec), "none"}] = {1, 2, 0.01};
  const ExchangeCosts costs = CostsOf(coded, 4, speeds);
  const PieceCost& first = costs.exchange.pieces[0][0];
  EXPECT_EQ(first.contributions[0].decode_seconds, 2 * first.contributions[0].encode_seconds);
  EXPECT_GT(first.contributions[0].encode_seconds, 0);
  EXPECT_EQ(first.sum.encode_seconds, 0);
  EXPECT_LT(costs.contributions.cost.likely_wire_bytes, costs.contributions.cost.wire_bytes / 5);
}

TEST(ExchangeCostsTest, AveragesHaveASpeedOfTheirOwn) {
  const std::vector<std::string> coded = {
      "replicas.contributions={codec: uniform, bits: 8, rounding: nearest}",
      "replicas.average={codec: uniform, bits: 8, rounding: nearest}"};
  const ReplicasSpec replicas = *ReplicasFrom(With(coded));
  const CodecSpec& codec = replicas.contributions.codec;
  ASSERT_EQ(CodecText(codec), CodecText(replicas.average.codec));
  Speeds speeds;
  speeds.codings[{kReplicas, true, CodecText(codec), "none"}] = {1, 1, 0.25};
  speeds.codings[AverageCoding(codec, FeedbackSpec(), codec, replicas.count)] = {3, 1, 0.25};
  speeds.codings[AverageCoding(codec, FeedbackSpec(), codec, replicas.count + 1)] = {9, 1, 0.25};
  const auto ratio = [&] {
    const PieceCost first = CostsOf(coded, 4, speeds).exchange.pieces[0][0];
    return first.sum.encode_seconds / first.contributions[0].encode_seconds;
  };
  EXPECT_DOUBLE_EQ(ratio(), 3);
  // That of a run, whatever its contributions were.
  speeds.codings.erase(AverageCoding(codec, FeedbackSpec(), codec, replicas.count));
  speeds.codings[{kReplicas, false, CodecText(codec), "none"}] = {5, 1, 0.25};
  EXPECT_DOUBLE_EQ(ratio(), 5);
}

TEST(ExchangeCostsTest, DigestsTakeTheirShareOfAnExchange) {
  Speeds speeds;
  speeds.digest_seconds_per_byte = 1e-6;
  const auto seconds = [&](const std::string& replicas, int carriers) {
    double all = 0;
    const ExchangeCosts costs = CostsOf({"replicas={" + replicas + "}"}, carriers, speeds);
    for (const auto& of_stage : costs.exchange.pieces) {
      for (const PieceCost& piece : of_stage) all += piece.contributions[0].encode_seconds;
    }
    return all;
  };
  const double once = 4e-6 * static_cast<double>(ElementsOf({}));
  EXPECT_DOUBLE_EQ(seconds("digest_every: 10", 4), once / 10);
  EXPECT_DOUBLE_EQ(seconds("digest_every: 10", 2), once / 10 / 2);  // of each of two replicas
  EXPECT_DOUBLE_EQ(seconds("digest_every: 10, sync: local, every: 5", 4), once);
  EXPECT_EQ(seconds("digest_every: 10", 1), 0);
  EXPECT_EQ(seconds("digest_every: 0", 4), 0);
}

}  // namespace
}  // namespace thinwire
