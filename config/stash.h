// The tensors that blocks keep for their backward passes: defaults and checks of
// pipeline.stash and pipeline.received.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/feedback/direction_spec.h"
#include "config/specs.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Fills in defaults and checks all values; the rest of `experiment` must be resolved.
// InvalidArgument names the field, the value met and what is wanted; for example for a codec that
// remembers earlier messages.
absl::Status ResolveStash(Experiment* experiment);

// Returns what encodes the tensors; nothing if they are kept as they are.
absl::StatusOr<std::optional<DirectionSpec>> StashFrom(const Experiment& experiment);

// Returns whether received activations are kept as their payloads.
bool KeepsPayloads(const Experiment& experiment);

// Bits in memory of an element that is kept for the backward pass; absent: it is kept as it is.
struct KeptBits {
  std::optional<double> stash;
  // Bits of the input of each segment, for where several microbatches are in flight.
  std::vector<std::optional<double>> payloads;
};
// Returns upper bounds for a resolved experiment. Of codecs with a lossless stage these are the
// bits of the elements themselves.
absl::StatusOr<KeptBits> KeptBitsOf(const Experiment& experiment, const Partition& partition);

}  // namespace thinwire
