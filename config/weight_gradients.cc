#include "config/weight_gradients.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codec_table.h"
#include "compress/layout.h"
#include "config/checks.h"
#include "config/choices.h"
#include "config/codec_config.h"
#include "config/direction.h"
#include "config/replicas_spec.h"
#include "config/smallest_message.h"
#include "config/specs.h"
#include "models/pieces.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

absl::Status Refuse(const std::string& field, const std::string& value, const std::string& wanted) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, ", want ", wanted,
                                                 ": what crosses there is a weight's gradient, "
                                                 "once a step, and no samples"));
}

absl::Status ResolveOfWeight(const std::string& path, bool gradient, DirectionConfig* direction) {
  RETURN_IF_ERROR(ResolveDirection(path, gradient, direction));
  ASSIGN_OR_RETURN(const DirectionSpec does, DirectionFrom(*direction, gradient));
  const StateKey key = does.feedback.key;
  if (does.feedback.kind != FeedbackKind::kNone && key != StateKey::kSlot &&
      key != StateKey::kStream) {
    return Refuse(path + ".feedback.key", Name(key), "slot or stream");
  }
  if (does.codec.needs_support()) {
    const bool is_shared = does.codec.indices == Indices::kShared;
    return is_shared ? Refuse(path + ".indices", "shared", "own")
                     : Refuse(path + ".support", "received_nonzero", "all");
  }
  if (does.epilogue_only) return Refuse(path + ".epilogue_only", "true", "false");
  return absl::OkStatus();
}

constexpr char kContributions[] = "replicas.contributions", kAverage[] = "replicas.average";
constexpr char kAutomatic[] = "auto";

// Fills in and checks what holds for both directions of an exchange among replicas.
absl::Status ResolveExchanged(const std::string& path, const Experiment& e,
                              DirectionConfig* direction) {
  RETURN_IF_ERROR(ResolveOfWeight(path, /*gradient=*/true, direction));
  RETURN_IF_ERROR(CheckRest(path, e, *direction));
  if (!direction->level().has_target_error()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ".level.target_error: ", direction->level().target_error(), ", want level.by_epoch"));
}

// The sum has no state: that of an owner would be lost with it.
absl::Status ResolveAverage(const Experiment& e, DirectionConfig* average) {
  RETURN_IF_ERROR(ResolveExchanged(kAverage, e, average));
  ASSIGN_OR_RETURN(const DirectionSpec does, DirectionFrom(*average, /*gradient=*/true));
  constexpr char kWhy[] = ": what an owner remembers would be lost with it";
  if (does.feedback.kind != FeedbackKind::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat(kAverage, ".feedback: ", average->feedback().kind(), ", want none", kWhy));
  }
  if (does.codec.rotation == Rotation::kPrincipal) {
    return absl::InvalidArgumentError(
        absl::StrCat(kAverage, ".rotation: principal, want none", kWhy));
  }
  if (!CodecRowOf(does.codec.kind).has(CodecRow::kRank)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(kAverage, ".codec: ", average->codec(), ", want one without state", kWhy));
}

// There is a store of rows for each piece and replica.
absl::Status ResolveContributions(const Experiment& e, DirectionConfig* contributions) {
  FillRoundingOfGradients(contributions);
  RETURN_IF_ERROR(ResolveExchanged(kContributions, e, contributions));
  const FeedbackConfig& feedback = contributions->feedback();
  if (feedback.limit_bytes() > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kContributions, ".feedback.limit_bytes: ", feedback.limit_bytes(),
                     ", want 0: all rows are kept"));
  }
  if (feedback.dir().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(kContributions, ".feedback.dir: ", feedback.dir(),
                                                 ", want none: rows are kept in memory"));
}

// Returns how many bits an element takes on its way, at most or, where the codec has a rate,
// likely.
absl::StatusOr<double> BitsOnTheWay(const std::string& path, const DirectionConfig& direction) {
  ASSIGN_OR_RETURN(const DirectionSpec does, DirectionFrom(direction, /*gradient=*/true));
  if (CodecRowOf(does.codec.kind).is_plugin) {
    return absl::InvalidArgumentError(
        absl::StrCat("replicas.exchange: auto with a plug-in's codec at ", path,
                     ", want reduce or gather: how much it sends is not known before"));
  }
  if (does.codec.rate > 0) return does.codec.rate;
  const Shape piece = {256, kPieceElements / 256};
  return 8.0 * static_cast<double>(CodecMaxPayloadBytes(does.codec, piece, DType::kF32)) /
         static_cast<double>(kPieceElements);
}

// Chooses the exchange that sends fewer bytes. Of n elements through codecs of c and a bits a
// replica of R sends (R - 1) / R n (c + a) with reduce and (R - 1) n c with gather.
absl::Status ChooseExchange(ReplicasConfig* replicas) {
  if (replicas->exchange() != kAutomatic) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double c, BitsOnTheWay(kContributions, replicas->contributions()));
  ASSIGN_OR_RETURN(const double a, BitsOnTheWay(kAverage, replicas->average()));
  const bool gathers = replicas->count() * c < c + a;
  replicas->set_exchange(Name(gathers ? ReplicaExchange::kGather : ReplicaExchange::kReduce));
  if (gathers) replicas->clear_average();
  return absl::OkStatus();
}

// Fills in and checks how the exchange of a round is divided and when its results are taken.
absl::Status ResolveRound(ReplicasConfig* replicas) {
  const uint32_t every = replicas->every(), fragments = replicas->fragments();
  RETURN_IF_ERROR(CheckValue(every >= 1, "replicas.every", every, "a number of steps, at least 1"));
  RETURN_IF_ERROR(CheckValue(fragments >= 1 && fragments <= every, "replicas.fragments", fragments,
                             absl::StrCat("1 to ", every, ", which is replicas.every")));
  const uint32_t turn = every / fragments;  // an exchange ends before the next one begins
  RETURN_IF_ERROR(CheckValue(
      replicas->overlap() < turn, "replicas.overlap", replicas->overlap(),
      absl::StrCat("less than ", turn, ", which is replicas.every by replicas.fragments")));
  if (replicas->overlap() == 0) {
    return CheckValue(!replicas->has_mix(), "replicas.mix", replicas->mix(),
                      "none without replicas.overlap");
  }
  if (!replicas->has_mix()) replicas->set_mix(0.5);
  return CheckValue(replicas->mix() >= 0 && replicas->mix() < 1, "replicas.mix", replicas->mix(),
                    "at least 0 and less than 1");
}

// Fills in and checks when replicas exchange and what becomes of it.
absl::Status ResolveSync(ReplicasConfig* replicas) {
  RETURN_IF_ERROR(ResolveChoice("replicas", replicas));
  if (replicas->sync() == Name(ReplicaSync::kStep)) return absl::OkStatus();
  RETURN_IF_ERROR(ResolveRound(replicas));
  RETURN_IF_ERROR(ResolveChoice("replicas.outer", replicas->mutable_outer()));
  return OuterFrom(replicas->outer()).status();
}

// Checks that what replicas have may be mixed with what they share.
absl::Status CheckMix(const ReplicasConfig& replicas, const Model& model) {
  if (replicas.overlap() == 0) return absl::OkStatus();
  for (const BlockSpec& block : model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      if (!parameter.orthonormal || !parameter.trainable) continue;
      return absl::InvalidArgumentError(absl::StrCat("replicas.overlap: ", replicas.overlap(),
                                                     ", want 0: a mixture of bases, as ",
                                                     parameter.name, " is, would be no basis"));
    }
  }
  return absl::OkStatus();
}

// Checks that a codec can carry each piece of the model.
absl::Status CheckPieces(const std::string& path, const DirectionConfig& direction,
                         const Model& model) {
  ASSIGN_OR_RETURN(const DirectionSpec does, DirectionFrom(direction, /*gradient=*/true));
  for (const BlockSpec& block : model.blocks) {
    std::vector<ParameterSpec> trained = Parameters(block);
    trained.erase(std::remove_if(trained.begin(), trained.end(),
                                 [](const ParameterSpec& one) { return !one.trainable; }),
                  trained.end());
    for (const Piece& piece : PiecesOf(trained)) {
      const absl::Status carries = piece.coded ? CheckCarries(does, piece.shape) : absl::OkStatus();
      if (carries.ok()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", carries.message(), ", piece ", piece.name));
    }
  }
  return absl::OkStatus();
}

// A sample must meet the same replica in every epoch where state belongs to it.
absl::Status CheckKeysOfCuts(const Experiment& e, const std::string& cut, bool gradient) {
  const DirectionConfig& direction = DirectionOf(e, cut, gradient);
  ASSIGN_OR_RETURN(const FeedbackSpec feedback, FeedbackFrom(direction.feedback(), gradient));
  if (feedback.kind == FeedbackKind::kNone || feedback.key != StateKey::kSample ||
      e.data().shuffle() == Name(ShuffleKind::kBatches)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(DirectionPath(e, cut, gradient), ".feedback.key: sample with replicas.count ",
                   e.replicas().count(), " and data.shuffle ", e.data().shuffle(),
                   ", want data.shuffle: batches: a sample's state is that of one replica"));
}

}  // namespace

absl::StatusOr<bool> HasTiedCut(const Experiment& experiment,
                                const std::vector<std::string>& cuts) {
  ASSIGN_OR_RETURN(const Model model, ModelFrom(experiment));
  if (!FindTiedWeight(model)) return false;
  if (std::find(cuts.begin(), cuts.end(), kTiedCut) != cuts.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("pipeline.cuts: ", kTiedCut,
                     ", want another name for that block: the exchange between "
                     "both copies of the model's tied weight has this one"));
  }
  return !cuts.empty();
}

absl::Status ResolveTied(CompressionConfig* compression) {
  const std::string path = absl::StrCat("compression.boundaries.", kTiedCut);
  BoundaryConfig& own = (*compression->mutable_boundaries())[kTiedCut];
  if (own.has_bottleneck()) {
    return Refuse(path + ".bottleneck.kind", own.bottleneck().kind(), "no bottleneck");
  }
  for (const bool gradient : {false, true}) {
    RETURN_IF_ERROR(ResolveOfWeight(absl::StrCat(path, ".", DirectionName(gradient)), gradient,
                                    MutableDirectionIn(gradient, &own)));
  }
  return absl::OkStatus();
}

absl::Status CheckReplicaCount(const Experiment& e) {
  if (!e.has_replicas()) return absl::OkStatus();
  if (!e.replicas().has_count()) return absl::InvalidArgumentError("replicas.count: is required");
  const uint32_t most = e.data().batch_size() / e.pipeline().microbatches();
  return CheckValue(
      e.replicas().count() >= 1 && e.replicas().count() <= most, "replicas.count",
      e.replicas().count(),
      absl::StrCat("1 to ", most, ", so that each of a replica's ", e.pipeline().microbatches(),
                   " microbatches has a sample of the batch of ", e.data().batch_size()));
}

absl::Status ResolveReplicas(Experiment* e) {
  if (!e->has_replicas()) return absl::OkStatus();
  ReplicasConfig* const replicas = e->mutable_replicas();
  RETURN_IF_ERROR(ResolveSync(replicas));
  if (!replicas->has_digest_every()) {
    replicas->set_digest_every(static_cast<uint32_t>(ReplicasSpec().digest_every));
  }
  if (!replicas->has_exchange()) replicas->set_exchange(Name(ReplicaExchange::kReduce));
  RETURN_IF_ERROR(
      CheckName("replicas.exchange", "exchange", replicas->exchange(),
                {Name(ReplicaExchange::kReduce), Name(ReplicaExchange::kGather), kAutomatic}));
  RETURN_IF_ERROR(ResolveContributions(*e, replicas->mutable_contributions()));
  if (replicas->exchange() == Name(ReplicaExchange::kGather) && replicas->has_average()) {
    return absl::InvalidArgumentError(
        "replicas.average: with replicas.exchange gather, want none: each adds for itself");
  }
  if (replicas->exchange() != Name(ReplicaExchange::kGather)) {
    RETURN_IF_ERROR(ResolveAverage(*e, replicas->mutable_average()));
  }
  RETURN_IF_ERROR(ChooseExchange(replicas));
  const bool gathers = replicas->exchange() == Name(ReplicaExchange::kGather);
  if (replicas->count() == 1 && !TrainsLocally(*e)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(*e));
  for (const Cut& cut : partition.cuts) {
    if (cut.name == kReplicas) {
      return absl::InvalidArgumentError(
          absl::StrCat("pipeline.cuts: ", kReplicas,
                       ", want another name for that block: what replicas exchange has this one"));
    }
    for (const bool gradient : {false, true}) {
      RETURN_IF_ERROR(CheckKeysOfCuts(*e, cut.name, gradient));
    }
  }
  RETURN_IF_ERROR(CheckMix(*replicas, partition.model));
  RETURN_IF_ERROR(CheckPieces(kContributions, replicas->contributions(), partition.model));
  return gathers ? absl::OkStatus() : CheckPieces(kAverage, replicas->average(), partition.model);
}

}  // namespace thinwire
