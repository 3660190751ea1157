// Which experiments can go on with a run of another.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// InvalidArgument names the fields that may not differ and do: what the state of a run is about
// (model, data, batches, seeds, the kind of optimizer and of numbers). Others may: cuts, stages,
// compression, learning rate, epochs. Both are resolved.
absl::Status CheckGoesOn(const Experiment& then, const Experiment& now);

// Compares the data that the stages have read with those that the run of `manifest` had, as far as
// that tells. InvalidArgument names both digests if they are others and the experiments name the
// same ones; where the user names others a line that says so, otherwise nothing.
absl::StatusOr<std::string> OtherData(const Experiment& then, const Experiment& now,
                                      const CheckpointManifest& manifest,
                                      const Provenance& provenance);

}  // namespace thinwire
