#include "config/direction.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/enum_names.h"
#include "base/status.h"
#include "compress/codec_table.h"
#include "config/checks.h"
#include "config/choices.h"
#include "config/codec_config.h"
#include "config/specs.h"
#include "models/tied_weight.h"

namespace thinwire {
namespace {

absl::Status CheckGradientOnly(const std::string& path, const DirectionConfig& direction) {
  if (direction.has_epilogue_only() && direction.epilogue_only()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ".epilogue_only: true, want it for gradients only"));
  }
  const bool is_shared = direction.indices() == Name(Indices::kShared);
  if (is_shared || direction.support() == Name(Support::kReceivedNonzero)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, is_shared ? ".indices: shared" : ".support: received_nonzero",
        ", want it for gradients only: an activation has no received activation before it"));
  }
  return absl::OkStatus();
}

absl::Status ResolveFeedback(const std::string& path, bool gradient, DirectionConfig* direction) {
  FeedbackConfig* feedback = direction->mutable_feedback();
  RETURN_IF_ERROR(ResolveChoice(path + ".feedback", feedback));
  RETURN_IF_ERROR(Annotated(FeedbackFrom(*feedback, gradient).status(), path));
  if (feedback->kind() != Name(FeedbackKind::kNone) &&
      direction->codec() == Name(CodecSpec().kind)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ".feedback: ", feedback->kind(),
                                                   " with codec none, which leaves no error"));
  }
  return absl::OkStatus();
}

absl::Status Refuse(const std::string& field, const std::string& value, const std::string& wanted) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, ", want ", wanted,
                                                 ": what crosses there is a weight's gradient, "
                                                 "once a step, and no samples"));
}

}  // namespace

const BoundaryConfig& OwnOf(const CompressionConfig& compression, const std::string& cut) {
  const auto found = compression.boundaries().find(cut);
  return found == compression.boundaries().end() ? BoundaryConfig::default_instance()
                                                 : found->second;
}

absl::Status ResolveDirection(const std::string& path, bool gradient, DirectionConfig* direction) {
  RETURN_IF_ERROR(ResolveChoice(path, direction));
  if (!gradient) RETURN_IF_ERROR(CheckGradientOnly(path, *direction));
  if (direction->has_on_nonfinite()) {
    RETURN_IF_ERROR(CheckName(path + ".on_nonfinite", "policy", direction->on_nonfinite(),
                              NamesOf(AllOf<OnNonfinite>())));
  }
  const absl::Status codec = CodecFrom(*direction).status();
  if (!codec.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", codec.message()));
  RETURN_IF_ERROR(CheckNoSilentField(path, *direction));
  RETURN_IF_ERROR(ResolveFeedback(path, gradient, direction));
  const absl::Status whole = DirectionFrom(*direction, gradient).status();
  if (whole.ok()) return whole;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", whole.message()));
}

absl::Status CheckRest(const std::string& at, const Experiment& experiment,
                       const DirectionConfig& direction) {
  const FeedbackConfig& feedback = direction.feedback();
  if (feedback.key() == Name(StateKey::kBatch) &&
      experiment.data().shuffle() != Name(ShuffleKind::kBatches)) {
    return absl::InvalidArgumentError(
        absl::StrCat(at, ".feedback.key: batch with data.shuffle ", experiment.data().shuffle(),
                     ", want batches: only then does a batch come back"));
  }
  if (direction.level().has_target_error() && experiment.metrics().error_every() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        at, ".level.target_error: with metrics.error_every 0, want the error to be measured"));
  }
  for (const auto& [epoch, level] : direction.level().by_epoch()) {
    // Evaluation uses the last level; without this check it could be a level that was never trained
    // at.
    if (std::stoul(epoch) > experiment.epochs()) {
      return absl::InvalidArgumentError(absl::StrCat(at, ".level.by_epoch: epoch ", epoch,
                                                     " of level ", level, ", the run has ",
                                                     experiment.epochs()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRemembersNothing(const std::string& path, const DirectionConfig& direction,
                                   bool gradient, const std::string& who) {
  const std::string why = absl::StrCat(": ", who, " nothing between messages");
  const auto refuse = [&path](const std::string& field, const std::string& value,
                              const std::string& want) {
    return absl::InvalidArgumentError(absl::StrCat(path, field, ": ", value, ", want ", want));
  };
  ASSIGN_OR_RETURN(const DirectionSpec does, DirectionFrom(direction, gradient));
  if (does.feedback.kind != FeedbackKind::kNone) {
    return refuse(".feedback", direction.feedback().kind(), "none" + why);
  }
  if (does.codec.rotation == Rotation::kPrincipal) {
    return refuse(".rotation", "principal", "none" + why);
  }
  if (does.codec.outliers > 0) {
    return refuse(".outliers", absl::StrCat(does.codec.outliers), "0" + why);
  }
  if (does.codec.first_position == FirstPosition::kExact) {
    return refuse(".first_position", "exact", "coded: not all that is coded begins sequences");
  }
  if (CodecRowOf(does.codec.kind).has(CodecRow::kRank)) {
    return refuse(".codec", direction.codec(), "one without state" + why);
  }
  if (does.codec.needs_support()) {
    const bool is_shared = does.codec.indices == Indices::kShared;
    return refuse(is_shared ? ".indices" : ".support", is_shared ? "shared" : "received_nonzero",
                  (is_shared ? "own" : "all") + why);
  }
  if (direction.level().has_target_error()) {
    return refuse(".level.target_error", absl::StrCat(direction.level().target_error()),
                  "level.by_epoch" + why);
  }
  return does.epilogue_only
             ? refuse(".epilogue_only", "true", "false: it is for the gradients of cuts")
             : absl::OkStatus();
}

absl::Status CheckCompressionAt(const Experiment& experiment, const std::string& cut) {
  const DirectionConfig& activations = DirectionOf(experiment, cut, /*gradient=*/false);
  const DirectionConfig& gradients = DirectionOf(experiment, cut, /*gradient=*/true);
  const std::string of_activations = DirectionPath(experiment, cut, /*gradient=*/false);
  const std::string of_gradients = DirectionPath(experiment, cut, /*gradient=*/true);
  RETURN_IF_ERROR(CheckRest(of_activations, experiment, activations));
  RETURN_IF_ERROR(CheckRest(of_gradients, experiment, gradients));
  if (activations.feedback().kind() == "ef_mixed_a" &&
      gradients.feedback().kind() != "ef_mixed_a") {
    return absl::InvalidArgumentError(
        absl::StrCat(of_activations, ".feedback.kind: ef_mixed_a with gradients.feedback.kind ",
                     gradients.feedback().kind(), " at cut ", cut,
                     ", want ef_mixed_a there: it acts on gradients alone"));
  }
  if (gradients.indices() != Name(Indices::kShared)) return absl::OkStatus();
  // Under ef the mask is that of x + e. The state that ef21 keeps at both ends is dense.
  ASSIGN_OR_RETURN(const FeedbackSpec feedback,
                   FeedbackFrom(activations.feedback(), /*gradient=*/false));
  const bool has_mask = feedback.kind == FeedbackKind::kNone || feedback.kind == FeedbackKind::kEf;
  const bool has_indices = NeedsOf(activations).count("indices") > 0;
  if (has_indices && has_mask) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(of_gradients, ".indices: shared with activations of codec ", activations.codec(),
                   " and feedback ", activations.feedback().kind(), " at cut ", cut,
                   ", want topk with feedback none or ef"));
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

}  // namespace thinwire
