// What an experiment may do and its user should hear of before it runs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Whether the codec of a cut's activations is causal (IsCausal).
struct Causality {
  std::string cut;
  bool is_causal = false;
};
// Of the cuts in model order; of none where the model takes no tokens, and not of the tied cut,
// where none cross. `experiment` is resolved.
absl::StatusOr<std::vector<Causality>> CausalityOf(const Experiment& experiment);

// A line for each codec of activations that is not causal, with the cuts of a model of tokens that
// have it, and one for each direction of a cut whose codec, at its lowest level, is no contraction
// for normal values, so that the state of its feedback may grow; then one for each whose lowest
// rate is less than a message takes anyway. Encodes a message or two of normal values for each.
// `experiment` is resolved.
absl::StatusOr<std::vector<std::string>> PlanWarnings(const Experiment& experiment);

}  // namespace thinwire
