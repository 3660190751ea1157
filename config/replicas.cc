#include "config/replicas.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codec_table.h"
#include "compress/layout.h"
#include "config/checks.h"
#include "config/choices.h"
#include "config/codec_config.h"
#include "config/direction.h"
#include "config/exact_segments.h"
#include "config/owned_pieces.h"
#include "config/piece_codec.h"
#include "config/replicas_spec.h"
#include "config/smallest_message.h"
#include "config/specs.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

constexpr char kContributions[] = "replicas.contributions", kAverage[] = "replicas.average";
constexpr char kStages[] = "replicas.stages";
constexpr char kAutomatic[] = "auto";
constexpr char kNoSums[] = ": with replicas.exchange gather, want none: each adds for itself";

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
absl::Status ResolveAverage(const std::string& path, const Experiment& e,
                            DirectionConfig* average) {
  RETURN_IF_ERROR(ResolveExchanged(path, e, average));
  ASSIGN_OR_RETURN(const DirectionSpec does, DirectionFrom(*average, /*gradient=*/true));
  constexpr char kWhy[] = ": what an owner remembers would be lost with it";
  if (does.feedback.kind != FeedbackKind::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ".feedback: ", average->feedback().kind(), ", want none", kWhy));
  }
  if (does.codec.rotation == Rotation::kPrincipal) {
    return absl::InvalidArgumentError(absl::StrCat(path, ".rotation: principal, want none", kWhy));
  }
  if (does.codec.outliers > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ".outliers: ", does.codec.outliers, ", want 0", kWhy));
  }
  if (!CodecRowOf(does.codec.kind).has(CodecRow::kRank)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ".codec: ", average->codec(), ", want one without state", kWhy));
}

// There is a store of rows for each piece and replica.
absl::Status ResolveContributions(const std::string& path, const Experiment& e,
                                  DirectionConfig* contributions) {
  FillRoundingOfGradients(contributions);
  RETURN_IF_ERROR(ResolveExchanged(path, e, contributions));
  const FeedbackConfig& feedback = contributions->feedback();
  if (feedback.limit_bytes() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ".feedback.limit_bytes: ", feedback.limit_bytes(), ", want 0: all rows are kept"));
  }
  if (feedback.dir().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ".feedback.dir: ", feedback.dir(),
                                                 ", want none: rows are kept in memory"));
}

// Checks that what low_rank makes of contributions can be reduced factor by factor.
absl::Status CheckFactors(const std::string& path, const ReplicasConfig& replicas,
                          const DirectionConfig& contributions) {
  ASSIGN_OR_RETURN(const DirectionSpec does, DirectionFrom(contributions, /*gradient=*/true));
  const bool is_factored = replicas.exchange() == Name(ReplicaExchange::kReduce) &&
                           CodecRowOf(does.codec.kind).has(CodecRow::kRank);
  if (!is_factored) return absl::OkStatus();
  constexpr char kWhy[] = ": with replicas.exchange reduce, low_rank's factors are added up";
  const FeedbackKind feedback = does.feedback.kind;
  if (feedback != FeedbackKind::kNone && feedback != FeedbackKind::kEf) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ".feedback: ", contributions.feedback().kind(), ", want none or ef", kWhy));
  }
  if (does.on_nonfinite != OnNonfinite::kError) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ".on_nonfinite: ", Name(does.on_nonfinite), ", want error", kWhy));
  }
  if (does.codec.lossless == Lossless::kNone) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ".lossless: ", Name(does.codec.lossless), ", want none", kWhy));
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
  ASSIGN_OR_RETURN(const DirectionSpec does, DirectionFrom(replicas->contributions(), true));
  // With low_rank a sum takes as many as a contribution.
  const bool is_factored = CodecRowOf(does.codec.kind).has(CodecRow::kRank);
  ASSIGN_OR_RETURN(const double of_sum, BitsOnTheWay(kAverage, replicas->average()));
  const double a = is_factored ? c : of_sum;
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
      if (!parameter.orthonormal || !parameter.is_trained()) continue;
      return absl::InvalidArgumentError(absl::StrCat("replicas.overlap: ", replicas.overlap(),
                                                     ", want 0: a mixture of bases, as ",
                                                     parameter.name, " is, would be no basis"));
    }
  }
  return absl::OkStatus();
}

std::string PathOfOwn(const std::string& segment, bool is_sum) {
  return absl::StrCat(kStages, ".", segment, ".", ExchangedName(is_sum));
}

// Completes the entries of single segments by the general ones, and checks them.
absl::Status ResolveOwnOfSegments(const std::vector<std::string>& names, Experiment* e) {
  ReplicasConfig* const replicas = e->mutable_replicas();
  const bool gathers = replicas->exchange() == Name(ReplicaExchange::kGather);
  for (auto& [name, own] : *replicas->mutable_stages()) {
    RETURN_IF_ERROR(CheckName(absl::StrCat(kStages, ".", name), "segment", name, names));
    for (const bool is_sum : {false, true}) {
      if (!HasExchanged(own, is_sum)) continue;
      const std::string path = PathOfOwn(name, is_sum);
      if (is_sum && gathers) {
        return absl::InvalidArgumentError(absl::StrCat(path, kNoSums));
      }
      DirectionConfig* const direction = MutableExchangedIn(is_sum, &own);
      *direction = OverlaidExchanged(ExchangedIn(*replicas, is_sum), *direction);
      RETURN_IF_ERROR((is_sum ? ResolveAverage : ResolveContributions)(path, *e, direction));
      if (!is_sum) RETURN_IF_ERROR(CheckFactors(path, *replicas, *direction));
    }
  }
  return absl::OkStatus();
}

// Fills in and checks the entries of single segments.
absl::Status ResolveSegments(const Partition& partition, Experiment* e) {
  ReplicasConfig* const replicas = e->mutable_replicas();
  const bool is_auto = replicas->stages().contains(kAutomatic);
  if (!is_auto && replicas->has_link_mbit()) {
    return absl::InvalidArgumentError(absl::StrCat("replicas.link_mbit: ", replicas->link_mbit(),
                                                   ", want none without ", kStages, ": auto"));
  }
  if (!is_auto) return ResolveOwnOfSegments(SegmentNames(partition.model, partition.cuts), e);
  if (replicas->stages_size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(kStages, ": auto and entries of segments, want one of both"));
  }
  const ExchangedConfig& given = replicas->stages().at(kAutomatic);
  if (given.has_contributions() || given.has_average()) {
    return absl::InvalidArgumentError(absl::StrCat(
        kStages, ".auto: entries, want none: the general ones are for what is not sent exactly"));
  }
  RETURN_IF_ERROR(ChooseExactSegments(partition, e));
  return ResolveOwnOfSegments(SegmentNames(partition.model, partition.cuts), e);
}

// Checks that codecs can carry each piece of the model.
absl::Status CheckPieces(const Experiment& e, const Partition& partition) {
  ASSIGN_OR_RETURN(const ReplicasSpec replicas, ReplicasFrom(e));
  const std::vector<std::string> names = SegmentNames(partition.model, partition.cuts);
  const std::optional<TiedWeight> weight = FindTiedWeight(partition.model);
  const std::string tied = weight ? weight->name : "";
  for (int stage = 0; stage < partition.placement.stages; ++stage) {
    for (const OwnedPiece& owned : PiecesOfStage(partition, stage, replicas.count)) {
      const int segment = SegmentOfEntries(owned.piece, owned.number, tied);
      for (const bool is_sum : {false, true}) {
        const DirectionSpec& contributions = replicas.ContributionsOf(segment);
        const DirectionSpec& does = is_sum ? replicas.AverageOf(segment) : contributions;
        if (!ActsOn(does.codec, owned.piece, tied)) continue;
        if (is_sum && IsFactored(replicas, contributions, owned.piece, tied)) continue;
        const absl::Status carries = CheckCarries(does, owned.piece.shape);
        if (carries.ok()) continue;
        const auto own = e.replicas().stages().find(names[segment]);
        const bool is_own = own != e.replicas().stages().end() && HasExchanged(own->second, is_sum);
        return absl::InvalidArgumentError(absl::StrCat(
            is_own ? PathOfOwn(names[segment], is_sum) : (is_sum ? kAverage : kContributions), ": ",
            carries.message(), ", piece ", owned.piece.name));
      }
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

// Checks that a run ends with an epoch where replicas share what they learned at its end.
absl::Status CheckLastExchange(const Experiment& e) {
  if (!TrainsLocally(e) || !e.has_steps()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t an_epoch, StepsPerEpoch(e));
  return CheckValue(e.steps() % an_epoch == 0, "steps", e.steps(),
                    absl::StrCat("a multiple of ", an_epoch,
                                 ", the steps of an epoch, with replicas.sync: local"));
}

}  // namespace

DirectionConfig OverlaidExchanged(const DirectionConfig& general, const DirectionConfig& own) {
  return own.codec() == Name(CodecSpec().kind) ? own : Overlaid(general, own);
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
  RETURN_IF_ERROR(CheckLastExchange(*e));
  if (!replicas->has_digest_every()) {
    replicas->set_digest_every(static_cast<uint32_t>(ReplicasSpec().digest_every));
  }
  if (!replicas->has_exchange()) replicas->set_exchange(Name(ReplicaExchange::kReduce));
  RETURN_IF_ERROR(
      CheckName("replicas.exchange", "exchange", replicas->exchange(),
                {Name(ReplicaExchange::kReduce), Name(ReplicaExchange::kGather), kAutomatic}));
  RETURN_IF_ERROR(ResolveContributions(kContributions, *e, replicas->mutable_contributions()));
  if (replicas->exchange() == Name(ReplicaExchange::kGather) && replicas->has_average()) {
    return absl::InvalidArgumentError(absl::StrCat(kAverage, kNoSums));
  }
  if (replicas->exchange() != Name(ReplicaExchange::kGather)) {
    RETURN_IF_ERROR(ResolveAverage(kAverage, *e, replicas->mutable_average()));
  }
  RETURN_IF_ERROR(ChooseExchange(replicas));
  RETURN_IF_ERROR(CheckFactors(kContributions, *replicas, replicas->contributions()));
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(*e));
  RETURN_IF_ERROR(ResolveSegments(partition, e));
  if (replicas->count() == 1 && !TrainsLocally(*e)) return absl::OkStatus();
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
  return CheckPieces(*e, partition);
}

}  // namespace thinwire
