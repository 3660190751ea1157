#include "config/weight_gradients.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
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

}  // namespace

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
