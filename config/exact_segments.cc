#include "config/exact_segments.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codec_table.h"
#include "compress/layout.h"
#include "compress/level.h"
#include "compress/low_rank_matrices.h"
#include "config/checks.h"
#include "config/owned_pieces.h"
#include "config/piece_codec.h"
#include "models/frozen.h"
#include "models/tied_weight.h"
#include "schedule/simulator.h"

namespace thinwire {
namespace {

// Assumption: a machine computes 100 GFLOP/s.
constexpr double kFlopsPerSecond = 100e9;
constexpr double kLeastMbit = 1e-6, kMostMbit = 1e12;
// Most replicas of a simulation, whose links grow with their square, and most passes in it.
constexpr uint32_t kMostReplicas = 64;
constexpr uint32_t kMostPasses = 1 << 16;

// Returns how many bytes a message takes, at most or, where the codec has a rate, likely.
absl::StatusOr<double> PayloadBytes(const std::string& path, const DirectionSpec& does,
                                    const Shape& message, DType dtype) {
  const CodecSpec codec = Target(does.codec, does.level);
  if (CodecRowOf(codec.kind).is_plugin) {
    return absl::InvalidArgumentError(
        absl::StrCat("replicas.stages: auto with a plug-in's codec at ", path,
                     ", want entries of segments: how much it sends is not known before"));
  }
  if (codec.rate > 0) return codec.rate / 8 * static_cast<double>(message.elements());
  return static_cast<double>(CodecMaxPayloadBytes(codec, message, dtype));
}

TransferCost OfBytes(double bytes) {
  TransferCost cost;
  cost.wire_bytes = bytes;
  return cost;
}

// A step whose segments are at machines of their own.
class AssumedStep {
 public:
  // `partition` has a stage for each segment.
  absl::Status Make(const Partition& partition, const Experiment& e) {
    ASSIGN_OR_RETURN(replicas_, ReplicasFrom(e));
    ASSIGN_OR_RETURN(const DType compute, ComputeFrom(e));
    const int64_t microbatches = BatchMicrobatchesOf(e);
    const int64_t samples = (e.data().batch_size() + microbatches - 1) / microbatches;
    const std::vector<SegmentCost> segments = SegmentCosts(partition.model, partition.cuts);
    passes_.microbatches = static_cast<int>(e.pipeline().microbatches());
    passes_.link.bits_per_second = 1e6 * e.replicas().link_mbit();
    passes_.link.nic = Nic::kShared;
    for (const SegmentCost& segment : segments) {
      ChunkCost& chunk = passes_.chunks.emplace_back();
      chunk.forward_seconds =
          static_cast<double>(samples) * segment.forward_flops / kFlopsPerSecond;
      chunk.backward_seconds =
          static_cast<double>(samples) * segment.backward_flops / kFlopsPerSecond;
    }
    for (const Cut& cut : partition.cuts) {
      const Shape message = partition.model.blocks[cut.block].out.WithBatch(samples);
      for (const bool gradient : {false, true}) {
        ASSIGN_OR_RETURN(const DirectionSpec does,
                         DirectionFrom(DirectionOf(e, cut.name, gradient), gradient));
        ASSIGN_OR_RETURN(const double bytes, PayloadBytes(DirectionPath(e, cut.name, gradient),
                                                          does, message, compute));
        const bool crosses = !gradient || HasGradients(partition.model, cut);
        (gradient ? passes_.gradients : passes_.activations)
            .push_back(OfBytes(crosses ? bytes : 0));
      }
    }
    return AddPieces(partition);
  }

  double Seconds(const std::set<int>& exact) const {
    Simulation simulation = passes_;
    const double without = Simulate(simulation).seconds;
    simulation.exchange = exchange_;
    for (size_t segment = 0; segment < pieces_.size(); ++segment) {
      std::vector<PieceCost>& costs = simulation.exchange.pieces.emplace_back();
      for (const Alternatives& piece : pieces_[segment]) {
        costs.push_back(exact.count(piece.segment) > 0 ? piece.exact : piece.coded);
      }
    }
    const double exposed = ExposedSeconds(Simulate(simulation).seconds, without,
                                          replicas_.fragments, replicas_.overlap);
    return without + exposed / static_cast<double>(replicas_.every);
  }

 private:
  // The costs of one piece with the general codecs and with none.
  struct Alternatives {
    PieceCost coded, exact;
    int segment = 0;  // whose entries hold for it
  };

  absl::Status AddPieces(const Partition& partition) {
    for (int replica = 1; replica < replicas_.count; ++replica) {
      exchange_.carrier_of.push_back(replica);
    }
    const std::optional<TiedWeight> weight = FindTiedWeight(partition.model);
    const std::string tied = weight ? weight->name : "";
    for (int segment = 0; segment < partition.placement.stages; ++segment) {
      std::vector<Alternatives>& all = pieces_.emplace_back();
      for (const OwnedPiece& owned : PiecesOfStage(partition, segment, replicas_.count)) {
        ASSIGN_OR_RETURN(const Alternatives piece, AlternativesOf(owned, tied));
        all.push_back(piece);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Alternatives> AlternativesOf(const OwnedPiece& owned,
                                              const std::string& tied) const {
    const Shape& shape = owned.piece.shape;
    Alternatives piece;
    piece.segment = SegmentOfEntries(owned.piece, owned.number, tied);
    piece.exact.owner = owned.owner;
    piece.exact.gathers = owned.to_all || replicas_.exchange == ReplicaExchange::kGather;
    const TransferCost exact = OfBytes(sizeof(float) * static_cast<double>(shape.elements()));
    TransferCost contribution = exact, sum = exact;
    const std::pair<const DirectionSpec*, TransferCost*> ways[] = {
        {&replicas_.contributions, &contribution}, {&replicas_.average, &sum}};
    for (const auto& [does, cost] : ways) {
      if (!ActsOn(does->codec, owned.piece, tied)) continue;
      const char* const path =
          does == &replicas_.average ? "replicas.average" : "replicas.contributions";
      ASSIGN_OR_RETURN(cost->wire_bytes, PayloadBytes(path, *does, shape, DType::kF32));
    }
    const auto replicas = static_cast<size_t>(replicas_.count);
    piece.coded = piece.exact;
    if (IsFactored(replicas_, replicas_.contributions, owned.piece, tied)) {
      const LowRankMatrices matrix = LowRankMatricesOf(shape, replicas_.contributions.codec);
      contribution = sum = OfBytes(sizeof(float) * static_cast<double>(matrix.p_floats()));
      const TransferCost second = OfBytes(sizeof(float) * static_cast<double>(matrix.q_floats()));
      piece.coded.second_contributions.assign(replicas, second);
      piece.coded.second_sum = second;
    }
    piece.exact.contributions.assign(replicas, exact);
    piece.exact.sum = exact;
    piece.coded.contributions.assign(replicas, contribution);
    piece.coded.sum = sum;
    return piece;
  }

  ReplicasSpec replicas_;
  Simulation passes_;                              // without an exchange
  Exchange exchange_;                              // without pieces
  std::vector<std::vector<Alternatives>> pieces_;  // of each segment
};

}  // namespace

absl::StatusOr<std::set<int>> ExactSegments(int segments, const SecondsOfExact& seconds) {
  std::set<int> exact;
  ASSIGN_OR_RETURN(const double compressed, seconds(exact));
  for (int segment = segments - 1; segment >= 0; --segment) {
    exact.insert(segment);
    ASSIGN_OR_RETURN(const double longer, seconds(exact));
    if (longer > (1 + kMostLonger) * compressed) exact.erase(segment);
  }
  return exact;
}

void SetExact(const std::vector<std::string>& names, const std::set<int>& exact,
              ReplicasConfig* replicas) {
  const char* const none = Name(CodecSpec().kind);
  const bool gathers = replicas->exchange() == Name(ReplicaExchange::kGather);
  for (const int segment : exact) {
    ExchangedConfig& own = (*replicas->mutable_stages())[names[segment]];
    own.mutable_contributions()->set_codec(none);
    if (!gathers) own.mutable_average()->set_codec(none);
  }
}

absl::Status ChooseExactSegments(const Partition& partition, Experiment* experiment) {
  ReplicasConfig* const replicas = experiment->mutable_replicas();
  const double mbit = replicas->link_mbit();
  if (!replicas->has_link_mbit()) {
    return absl::InvalidArgumentError("replicas.link_mbit: is required with replicas.stages: auto");
  }
  RETURN_IF_ERROR(CheckValue(mbit >= kLeastMbit && mbit <= kMostMbit, "replicas.link_mbit", mbit,
                             absl::StrCat(kLeastMbit, " to ", kMostMbit, " Mbit/s")));
  RETURN_IF_ERROR(
      CheckValue(replicas->count() <= kMostReplicas, "replicas.count", replicas->count(),
                 absl::StrCat("at most ", kMostReplicas, " with replicas.stages: auto")));
  const size_t segments = partition.cuts.size() + 1;
  const size_t passes = segments * BatchMicrobatchesOf(*experiment);
  RETURN_IF_ERROR(CheckValue(
      passes <= kMostPasses, "pipeline.microbatches", experiment->pipeline().microbatches(),
      absl::StrCat("at most ", kMostPasses / (segments * replicas->count()), " for ", segments,
                   " segments of ", replicas->count(), " replicas with replicas.stages: auto")));
  Partition apart = partition;
  ASSIGN_OR_RETURN(apart.placement,
                   BalancedPlacement(partition.model, partition.cuts, static_cast<int>(segments)));
  replicas->clear_stages();
  AssumedStep step;
  RETURN_IF_ERROR(step.Make(apart, *experiment));
  ASSIGN_OR_RETURN(const std::set<int> exact,
                   ExactSegments(apart.placement.stages, [&](const std::set<int>& segments) {
                     return absl::StatusOr<double>(step.Seconds(segments));
                   }));
  replicas->clear_link_mbit();
  SetExact(SegmentNames(partition.model, partition.cuts), exact, replicas);
  return absl::OkStatus();
}

}  // namespace thinwire
