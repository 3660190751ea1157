// Defaults and checks of what compresses the gradients of a tied weight (models/tied_weight.h).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Whether a tied weight of the model has its two copies on both sides of these cuts.
// InvalidArgument where one of them has the name of that exchange.
absl::StatusOr<bool> HasTiedCut(const Experiment& experiment, const std::vector<std::string>& cuts);

// Fills in compression.boundaries.tied, whose directions are `none` and not the general ones unless
// it says otherwise. InvalidArgument names what is for microbatches of samples only.
absl::Status ResolveTied(CompressionConfig* compression);

}  // namespace thinwire
