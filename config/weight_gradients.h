// Defaults and checks of the compression of weights' gradients: of a tied weight
// (models/tied_weight.h), and of what replicas exchange.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Returns whether a tied weight of the model has its two copies on different sides of these cuts.
// InvalidArgument if a cut has the name of that exchange.
absl::StatusOr<bool> HasTiedCut(const Experiment& experiment, const std::vector<std::string>& cuts);

// Fills in compression.boundaries.tied. Its directions default to `none`, not to the general
// entries. InvalidArgument names what works only for microbatches of samples.
absl::Status ResolveTied(CompressionConfig* compression);

// Checks the number of replicas, which other checks divide by. InvalidArgument names the numbers
// that are possible with the microbatches and the batch.
absl::Status CheckReplicaCount(const Experiment& experiment);

// Fills in `replicas` and checks it against the rest of the experiment, which must be resolved.
// Both directions default to `none`.
absl::Status ResolveReplicas(Experiment* experiment);

}  // namespace thinwire
