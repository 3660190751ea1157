// Warnings that a user should see before an experiment runs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Causality (IsCausal) of the codec of a cut's activations.
struct Causality {
  std::string cut;
  bool is_causal = false;
};
// Returns an entry for each cut of the resolved `experiment`, in model order, if its model takes
// tokens; else none. The tied cut has no entry, as no activations cross it.
absl::StatusOr<std::vector<Causality>> CausalityOf(const Experiment& experiment);

// Returns the warnings for the resolved `experiment`, one line each, in this order:
// - lines of the data that were skipped;
// - a codec of activations that is not causal, with the cuts of a model of tokens that have it;
// - a direction of a cut whose codec, at its lowest level, is no contraction for normal values, so
//   that the state of its feedback may grow;
// - a codec whose lowest rate is less than a message takes anyway.
// Encodes a message or two of normally distributed values for each.
absl::StatusOr<std::vector<std::string>> PlanWarnings(const Experiment& experiment);

}  // namespace thinwire
