// Check whether an experiment can continue the run of another.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Checks that `now` can continue the run of `then`; both are resolved. InvalidArgument names the
// fields that differ and may not: those that the state of a run depends on (model, data, batches,
// seeds, kinds of optimizer and of numbers). Cuts, stages, compression, learning rate and epochs
// may differ.
absl::Status CheckGoesOn(const Experiment& then, const Experiment& now);

// Compares the data that the stages have read with those of the run of `manifest`, as far as the
// digests tell. InvalidArgument names both digests if they differ although the experiments name the
// same data. If the user names other data, returns a line that says so; otherwise an empty string.
absl::StatusOr<std::string> OtherData(const Experiment& then, const Experiment& now,
                                      const CheckpointManifest& manifest,
                                      const Provenance& provenance);

}  // namespace thinwire
