// What an experiment may do and its user should hear of before it runs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// A line for each direction of a cut whose codec, at its lowest level, is no contraction for normal
// values, so that the state of its feedback may grow. Encodes one message of some samples for each.
// `experiment` is resolved.
absl::StatusOr<std::vector<std::string>> PlanWarnings(const Experiment& experiment);

}  // namespace thinwire
