#include "config/weight_gradients.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codec_table.h"
#include "config/checks.h"
#include "config/codec_config.h"
#include "config/direction.h"
#include "config/specs.h"
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

// Checks what holds for both directions of an exchange among replicas.
absl::Status CheckExchanged(const std::string& path, const DirectionConfig& direction) {
  if (!direction.level().has_target_error()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ".level.target_error: ", direction.level().target_error(), ", want level.by_epoch"));
}

// The sum has no state: that of an owner would be lost with it.
absl::Status ResolveAverage(const std::string& path, DirectionConfig* average) {
  RETURN_IF_ERROR(ResolveOfWeight(path, /*gradient=*/true, average));
  RETURN_IF_ERROR(CheckExchanged(path, *average));
  ASSIGN_OR_RETURN(const DirectionSpec does, DirectionFrom(*average, /*gradient=*/true));
  if (does.feedback.kind != FeedbackKind::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ".feedback: ", average->feedback().kind(),
                     ", want none: what an owner remembers would be lost with it"));
  }
  const bool has_axes = does.codec.rotation == Rotation::kPrincipal;
  if (!has_axes && !CodecRowOf(does.codec.kind).has(CodecRow::kRank)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, has_axes ? ".rotation: principal" : ".codec: ", has_axes ? "" : average->codec(),
      ", want one without state: what an owner remembers would be lost with it"));
}

absl::Status ResolveContributions(const std::string& path, DirectionConfig* contributions) {
  FillRoundingOfGradients(contributions);
  RETURN_IF_ERROR(ResolveOfWeight(path, /*gradient=*/true, contributions));
  return CheckExchanged(path, *contributions);
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

absl::Status ResolveReplicas(Experiment* e) {
  if (!e->has_replicas()) return absl::OkStatus();
  ReplicasConfig* const replicas = e->mutable_replicas();
  if (!replicas->has_count()) return absl::InvalidArgumentError("replicas.count: is required");
  const uint32_t most = e->data().batch_size() / e->pipeline().microbatches();
  RETURN_IF_ERROR(CheckValue(
      replicas->count() >= 1 && replicas->count() <= most, "replicas.count", replicas->count(),
      absl::StrCat("1 to ", most, ", so that each of a replica's ", e->pipeline().microbatches(),
                   " microbatches has a sample of the batch of ", e->data().batch_size())));
  const bool gathers = replicas->exchange() == Name(ReplicaExchange::kGather);
  if (!replicas->has_exchange()) replicas->set_exchange(Name(ReplicaExchange::kReduce));
  RETURN_IF_ERROR(CheckName("replicas.exchange", "exchange", replicas->exchange(),
                            {Name(ReplicaExchange::kReduce), Name(ReplicaExchange::kGather)}));
  RETURN_IF_ERROR(
      ResolveContributions("replicas.contributions", replicas->mutable_contributions()));
  if (gathers && replicas->has_average()) {
    return absl::InvalidArgumentError(
        "replicas.average: with replicas.exchange gather, want none: each adds for itself");
  }
  if (!gathers) {
    RETURN_IF_ERROR(ResolveAverage("replicas.average", replicas->mutable_average()));
  }
  if (replicas->count() == 1) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(*e));
  for (const Cut& cut : partition.cuts) {
    for (const bool gradient : {false, true}) {
      RETURN_IF_ERROR(CheckKeysOfCuts(*e, cut.name, gradient));
    }
  }
  return absl::OkStatus();
}

}  // namespace thinwire
