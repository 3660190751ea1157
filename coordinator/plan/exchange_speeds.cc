#include "coordinator/plan/exchange_speeds.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/status.h"
#include "compress/codec_table.h"
#include "config/owned_pieces.h"
#include "config/piece_codec.h"
#include "config/replicas_spec.h"
#include "config/specs.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

// Elements of one exchange.
struct Elements {
  double counted = 0;  // once for each receiver
  double exact = 0;    // part of them on which no codec acts
  double encoded = 0, decoded = 0;
};

// The replicas of a run and who carried them.
struct Carried {
  ReplicasSpec replicas;
  int carriers = 1;

  int By(int carrier) const { return CarriedBy(carrier, carriers, replicas.count).size(); }
};

// Returns how many contributions to a piece are decoded. Who encodes one with feedback knows what
// it decodes to.
double DecodedContributions(const OwnedPiece& owned, const Carried& carried) {
  const ReplicasSpec& replicas = carried.replicas;
  const bool remembers = replicas.contributions.feedback.kind != FeedbackKind::kNone;
  if (replicas.exchange == ReplicaExchange::kGather) {
    return double{1} * carried.carriers * replicas.count - (remembers ? replicas.count : 0);
  }
  const int adder = CarrierOf(owned.owner, carried.carriers, replicas.count);
  return replicas.count - (remembers ? carried.By(adder) : 0);
}

Elements ElementsOf(const Partition& partition, const Carried& carried, bool is_sum) {
  const ReplicasSpec& replicas = carried.replicas;
  const CodecSpec& codec = (is_sum ? replicas.average : replicas.contributions).codec;
  const std::optional<TiedWeight> weight = FindTiedWeight(partition.model);
  const std::string tied = weight ? weight->name : "";
  const double others = replicas.count - 1;
  Elements all;
  for (int stage = 0; stage < partition.placement.stages; ++stage) {
    for (const OwnedPiece& owned : PiecesOfStage(partition, stage, replicas.count)) {
      if (is_sum && owned.to_all) continue;
      const bool to_all = owned.to_all || replicas.exchange == ReplicaExchange::kGather;
      const bool is_copy = IsOfTied(owned.piece, tied) && SegmentOfPiece(owned.number) > 0;
      const auto elements = static_cast<double>(owned.piece.shape.elements());
      const double counted = is_copy ? 0 : elements * others * (to_all ? replicas.count : 1);
      all.counted += counted;
      if (!ActsOn(codec, owned.piece, tied)) {
        all.exact += counted;
        continue;
      }
      all.encoded += elements * (is_sum ? 1 : replicas.count);
      all.decoded += elements * (is_sum ? carried.carriers : DecodedContributions(owned, carried));
    }
  }
  return all;
}

void AddSpeed(const DirectionRecord& record, const Elements& elements,
              std::map<Coding, CodingSpeed>* codings) {
  const double raw_bytes = static_cast<double>(record.raw_bytes());
  if (!(elements.counted > elements.exact) || !(raw_bytes > 0) || !(elements.decoded > 0)) return;
  if (!(record.encode_seconds() > 0) || !(record.decode_seconds() > 0)) return;
  const double bytes_of_element = raw_bytes / elements.counted;  // of all exchanges
  const double exact_bytes = bytes_of_element * elements.exact;
  const double payload_bytes =
      std::max(0.0, static_cast<double>(record.payload_bytes()) - exact_bytes);
  codings->insert({{kReplicas, true, record.parameters(), record.feedback()},
                   {record.encode_seconds() / (bytes_of_element * elements.encoded),
                    record.decode_seconds() / (bytes_of_element * elements.decoded),
                    payload_bytes / (raw_bytes - exact_bytes)}});
}

}  // namespace

absl::Status AddExchangeSpeeds(const Summary& summary, const Experiment& ran,
                               std::map<Coding, CodingSpeed>* codings) {
  if (!summary.has_replicas() || ReplicasOf(ran) == 1) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(ran));
  Carried carried;
  ASSIGN_OR_RETURN(carried.replicas, ReplicasFrom(ran));
  if (!carried.replicas.segments.empty()) return absl::OkStatus();
  carried.carriers =
      std::clamp(static_cast<int>(summary.replicas().carriers()), 1, carried.replicas.count);
  DirectionRecord contributions = summary.replicas().contributions();
  Elements elements = ElementsOf(partition, carried, /*is_sum=*/false);
  const bool by_factors =
      carried.replicas.exchange == ReplicaExchange::kReduce &&
      CodecRowOf(carried.replicas.contributions.codec.kind).has(CodecRow::kRank);
  if (by_factors) {
    // What the factors become is decoded behind their sums, by all machines.
    contributions.set_decode_seconds(summary.replicas().average().decode_seconds());
    elements.decoded = elements.encoded / carried.replicas.count * carried.carriers;
  }
  AddSpeed(contributions, elements, codings);
  if (by_factors) return absl::OkStatus();
  if (carried.replicas.exchange == ReplicaExchange::kReduce) {
    AddSpeed(summary.replicas().average(), ElementsOf(partition, carried, /*is_sum=*/true),
             codings);
  }
  return absl::OkStatus();
}

}  // namespace thinwire
