#include "coordinator/plan/exchange_costs.h"

#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "compress/codecs/plugin.h"
#include "compress/low_rank_matrices.h"
#include "config/owned_pieces.h"
#include "config/piece_codec.h"
#include "models/tied_weight.h"
#include "wire/message_kind.h"

namespace thinwire {
namespace {

// Costs of the pieces of an experiment.
class PieceCosts {
 public:
  PieceCosts(const Experiment& experiment, int64_t digest_every, uint64_t last_step,
             std::string tied, const Speeds& speeds)
      : experiment_(experiment),
        digest_every_(digest_every),
        last_step_(last_step),
        tied_(std::move(tied)),
        speeds_(speeds) {}

  // Returns the cost of a message of the last step, where its header takes the most bytes. The
  // sender's number counts too; a sum is of replica 0.
  absl::StatusOr<MessageCost> Of(const OwnedPiece& piece, Phase phase, int replica,
                                 const ExchangedSpec& both) const {
    const DirectionSpec& does = IsOfSum(phase) ? both.average : both.contributions;
    MessageHeader header = HeaderOf(piece, phase, replica);
    FeedbackSpec feedback;
    const CodecSpec codec = Target(does.codec, does.level);
    if (ActsOn(codec, piece.piece, tied_)) {
      header.codec = codec;
      feedback = does.feedback;
    }
    if (feedback.digest_every == 1) header.state_digest = 1;
    if (!IsOfSum(phase)) return CostOf(header, feedback, SpeedOfContribution(codec, feedback));
    const CodecSpec contributed = Target(both.contributions.codec, both.contributions.level);
    const Coding coding = AverageCoding(codec, feedback, contributed, ReplicasOf(experiment_));
    return CostOf(header, feedback, SpeedOf(coding, speeds_));
  }

  // Returns likewise the cost of a factor of a piece that is reduced by factors, of which the first
  // one stands for the elements. Both contributions share the codec's time, and decoding is behind
  // the second sum.
  absl::StatusOr<MessageCost> OfFactor(const OwnedPiece& piece, Phase phase, int replica,
                                       const DirectionSpec& does) const {
    const bool is_first = phase == PHASE_CONTRIBUTION || phase == PHASE_AVERAGE;
    const LowRankMatrices matrix = LowRankMatricesOf(piece.piece.shape, does.codec);
    MessageHeader header = HeaderOf(piece, phase, replica);
    header.shape = {is_first ? matrix.rows : matrix.columns, matrix.rank};
    ASSIGN_OR_RETURN(MessageCost cost, CostOf(header, FeedbackSpec(), CodingSpeed()));
    const int64_t raw_bytes = piece.piece.shape.elements() * static_cast<int64_t>(sizeof(float));
    const CodingSpeed& speed = SpeedOfContribution(does.codec, does.feedback);
    cost.raw_bytes = is_first ? raw_bytes : 0;
    const auto bytes = static_cast<double>(raw_bytes);
    if (!IsOfSum(phase)) cost.encode_seconds = bytes * speed.encode_seconds_per_byte / 2;
    if (IsOfSum(phase) && !is_first) cost.decode_seconds = bytes * speed.decode_seconds_per_byte;
    return cost;
  }

 private:
  MessageHeader HeaderOf(const OwnedPiece& piece, Phase phase, int replica) const {
    MessageHeader header;
    header.key.phase = phase;
    header.key.direction = DIRECTION_GRADIENT;
    header.key.cut = piece.number;
    header.key.epoch = experiment_.epochs();
    header.key.step = last_step_;
    header.key.microbatch = static_cast<uint32_t>(replica);
    header.dtype = DType::kF32;
    header.shape = piece.piece.shape;
    const bool has_digest = phase == PHASE_CONTRIBUTION && digest_every_ > 0;
    if (has_digest && !piece.to_all) header.sample_digest = 1;
    return header;
  }

  const CodingSpeed& SpeedOfContribution(const CodecSpec& codec,
                                         const FeedbackSpec& feedback) const {
    return SpeedOf({kReplicas, true, CodecText(codec), feedback.ToString()}, speeds_);
  }

  const Experiment& experiment_;
  const int64_t digest_every_;
  const uint64_t last_step_;
  const std::string tied_;
  const Speeds& speeds_;
};

TransferCost TransferOf(const MessageCost& cost) {
  return {cost.encode_seconds, cost.decode_seconds, static_cast<double>(cost.likely_wire_bytes)};
}

// Adds messages of one cost, of which so many cross, are encoded and are decoded.
void Add(const MessageCost& cost, int64_t crossing, int encoded, int decoded,
         ExchangedMessages* all) {
  all->messages += crossing;
  all->cost +=
      {crossing * cost.raw_bytes, crossing * cost.wire_bytes, crossing * cost.likely_wire_bytes,
       encoded * cost.encode_seconds, decoded * cost.decode_seconds};
}

// Returns to how many machines a replica's contribution to a piece crosses.
int Crossing(const Exchange& exchange, const PieceCost& piece, int replica) {
  if (piece.gathers) return exchange.carriers() - 1;
  return exchange.carrier_of[replica] != exchange.carrier_of[piece.owner];
}

// Adds what a piece that is reduced by factors costs: two contributions of each replica, two sums.
absl::Status AddFactors(const PieceCosts& costs, const OwnedPiece& owned, const DirectionSpec& does,
                        PieceCost* piece, ExchangeCosts* all) {
  const int carriers = all->exchange.carriers();
  piece->decodes_own = false;
  for (const bool is_first : {true, false}) {
    for (int replica = 0; replica < all->exchange.replicas(); ++replica) {
      const Phase phase = is_first ? PHASE_CONTRIBUTION : PHASE_SECOND_CONTRIBUTION;
      ASSIGN_OR_RETURN(const MessageCost cost, costs.OfFactor(owned, phase, replica, does));
      Add(cost, Crossing(all->exchange, *piece, replica), /*encoded=*/1, /*decoded=*/1,
          &all->contributions);
      (is_first ? piece->contributions : piece->second_contributions).push_back(TransferOf(cost));
    }
    const Phase phase = is_first ? PHASE_AVERAGE : PHASE_SECOND_AVERAGE;
    ASSIGN_OR_RETURN(const MessageCost sum, costs.OfFactor(owned, phase, /*replica=*/0, does));
    Add(sum, carriers - 1, /*encoded=*/1, carriers, &all->sums);
    (is_first ? piece->sum : piece->second_sum) = TransferOf(sum);
  }
  return absl::OkStatus();
}

// Adds what a piece that is reduced or gathered whole costs.
absl::Status AddWhole(const PieceCosts& costs, const OwnedPiece& owned, const ExchangedSpec& does,
                      PieceCost* piece, ExchangeCosts* all) {
  const int carriers = all->exchange.carriers();
  piece->decodes_own = does.contributions.feedback.kind == FeedbackKind::kNone;
  for (int replica = 0; replica < all->exchange.replicas(); ++replica) {
    ASSIGN_OR_RETURN(const MessageCost contribution,
                     costs.Of(owned, PHASE_CONTRIBUTION, replica, does));
    Add(contribution, Crossing(all->exchange, *piece, replica), /*encoded=*/1,
        /*decoded=*/piece->gathers ? carriers : 1, &all->contributions);
    piece->contributions.push_back(TransferOf(contribution));
  }
  if (piece->gathers) return absl::OkStatus();
  ASSIGN_OR_RETURN(const MessageCost sum, costs.Of(owned, PHASE_AVERAGE, /*replica=*/0, does));
  Add(sum, carriers - 1, /*encoded=*/1, carriers, &all->sums);
  piece->sum = TransferOf(sum);
  return absl::OkStatus();
}

// Returns the digests of an exchange, as a mean over exchanges: none where nobody compares them.
double DigestsOf(const ReplicasSpec& replicas, int carriers) {
  if (carriers == 1 || replicas.digest_every == 0) return 0;
  return replicas.trains_locally() ? 1 : 1.0 / static_cast<double>(replicas.digest_every);
}

}  // namespace

absl::StatusOr<ExchangeCosts> CostsOfExchange(const Experiment& experiment, int carriers,
                                              const ReplicaRange& parts, const Speeds& speeds,
                                              bool exactly) {
  ASSIGN_OR_RETURN(ReplicasSpec replicas, ReplicasFrom(experiment));
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  ASSIGN_OR_RETURN(const uint64_t last_step, TrainingSteps(experiment));
  if (exactly) {
    replicas.contributions = replicas.average = DirectionSpec();
    replicas.segments.clear();
  }
  const std::optional<TiedWeight> weight = FindTiedWeight(partition.model);
  const std::string tied = weight ? weight->name : "";
  const PieceCosts costs(experiment, replicas.digest_every, last_step, tied, speeds);
  ExchangeCosts all;
  Exchange& exchange = all.exchange;
  for (int replica = 1; replica < replicas.count; ++replica) {
    exchange.carrier_of.push_back(CarrierOf(replica, carriers, replicas.count));
  }
  if (replicas.count == 1) return all;
  const int carried = (replicas.count + carriers - 1) / carriers;
  const double digest_seconds_per_byte =
      DigestsOf(replicas, carriers) * speeds.digest_seconds_per_byte;
  for (int stage = 0; stage < partition.placement.stages; ++stage) {
    std::vector<PieceCost>& of_stage = exchange.pieces.emplace_back();
    double bytes = 0;
    for (const OwnedPiece& owned : PiecesOfStage(partition, stage, replicas.count)) {
      if (owned.part && !parts.has(*owned.part)) continue;
      const int segment = SegmentOfEntries(owned.piece, owned.number, tied);
      const DirectionSpec& contributions = replicas.ContributionsOf(segment);
      bytes += sizeof(float) * static_cast<double>(owned.piece.shape.elements());
      PieceCost piece;
      piece.owner = owned.owner;
      piece.gathers = owned.to_all || replicas.exchange == ReplicaExchange::kGather;
      if (!owned.to_all && IsFactored(replicas, contributions, owned.piece, tied)) {
        RETURN_IF_ERROR(AddFactors(costs, owned, contributions, &piece, &all));
      } else {
        RETURN_IF_ERROR(
            AddWhole(costs, owned, {contributions, replicas.AverageOf(segment)}, &piece, &all));
      }
      of_stage.push_back(piece);
    }
    // A machine computes it once, before the first piece of the first replica that it carries.
    if (of_stage.empty()) continue;
    for (TransferCost& contribution : of_stage.front().contributions) {
      contribution.encode_seconds += bytes * digest_seconds_per_byte / carried;
    }
  }
  return all;
}

}  // namespace thinwire
