// Defaults and checks of the compression of weights' gradients: of a tied weight
// (models/tied_weight.h), and what also holds for what replicas exchange (replicas.h).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Does what ResolveDirection does. InvalidArgument also names what works only for microbatches of
// samples.
absl::Status ResolveOfWeight(const std::string& path, bool gradient, DirectionConfig* direction);

// Returns whether a tied weight of the model has its two copies on different sides of these cuts.
// InvalidArgument if a cut has the name of that exchange.
absl::StatusOr<bool> HasTiedCut(const Experiment& experiment, const std::vector<std::string>& cuts);

// Fills in compression.boundaries.tied. Its directions default to `none`, not to the general
// entries.
absl::Status ResolveTied(CompressionConfig* compression);

}  // namespace thinwire
