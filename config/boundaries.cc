#include "config/boundaries.h"

#include <algorithm>
#include <utility>

#include "config/specs.h"
#include "config/tensor_parts.h"
#include "config/yaml_message.h"
#include "models/parts.h"
#include "models/tied_weight.h"

namespace thinwire {

std::vector<std::string> CutNames(const Experiment& experiment) {
  const auto& cuts = experiment.pipeline().cuts();
  if (cuts.size() == 1 && cuts[0] == kEmptyList) return {};
  std::vector<std::string> names(cuts.begin(), cuts.end());
  // A resolved experiment describes the tied cut if there is one.
  const bool is_another = std::find(names.begin(), names.end(), kTiedCut) != names.end();
  const bool has_tied = experiment.compression().boundaries().contains(kTiedCut) && !is_another;
  if (has_tied) names.push_back(kTiedCut);
  return names;
}

std::vector<std::string> BoundaryNames(const Experiment& experiment) {
  std::vector<std::string> names = CutNames(experiment);
  if (PartsOf(experiment) > 1) names.push_back(kSums);
  return names;
}

bool HasMemory(const DirectionConfig& direction) {
  const bool has_feedback = direction.feedback().kind() != "none";
  return has_feedback || direction.codec() == "low_rank" || direction.rotation() == "principal" ||
         direction.level().has_target_error() || direction.outliers() > 0;
}

std::vector<Remembering> RememberingOf(const Experiment& experiment) {
  std::vector<Remembering> all;
  for (const std::string& cut : CutNames(experiment)) {
    for (const bool gradient : {false, true}) {
      all.push_back({cut, gradient, DirectionOf(experiment, cut, gradient)});
    }
  }
  if (ReplicasOf(experiment) == 1) return all;
  DirectionConfig contributions = experiment.replicas().contributions();
  for (const auto& [segment, own] : experiment.replicas().stages()) {
    if (own.has_contributions() && HasMemory(own.contributions())) {
      contributions = own.contributions();
    }
  }
  all.push_back({kReplicas, true, std::move(contributions)});
  return all;
}

bool RemembersMessages(const Experiment& experiment) {
  const std::vector<Remembering> all = RememberingOf(experiment);
  return std::any_of(all.begin(), all.end(),
                     [](const Remembering& one) { return HasMemory(one.direction); });
}

}  // namespace thinwire
