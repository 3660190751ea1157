// Defaults and checks of an experiment's `replicas`.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Access to the entry of contributions or of their sums in a section: a ReplicasConfig or an
// ExchangedConfig.
inline const char* ExchangedName(bool is_sum) { return is_sum ? "average" : "contributions"; }
template <typename Section>
bool HasExchanged(const Section& section, bool is_sum) {
  return is_sum ? section.has_average() : section.has_contributions();
}
template <typename Section>
const DirectionConfig& ExchangedIn(const Section& section, bool is_sum) {
  return is_sum ? section.average() : section.contributions();
}
template <typename Section>
DirectionConfig* MutableExchangedIn(bool is_sum, Section* section) {
  return is_sum ? section->mutable_average() : section->mutable_contributions();
}

// Returns the general entry with a segment's own merged over it. One with codec none takes nothing
// from the general one.
DirectionConfig OverlaidExchanged(const DirectionConfig& general, const DirectionConfig& own);

// Checks the number of replicas, which other checks divide by. InvalidArgument names the numbers
// that are possible with the microbatches and the batch.
absl::Status CheckReplicaCount(const Experiment& experiment);

// Fills in `replicas` and checks it against the rest of the experiment, which must be resolved.
// Both directions default to `none`. Of `stages: auto` become entries of segments.
absl::Status ResolveReplicas(Experiment* experiment);

}  // namespace thinwire
