// Checks of the smallest message that a run sends, so that a run fails before it starts and not at
// the last batch of an epoch.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/feedback/direction_spec.h"
#include "config/specs.h"
#include "proto/experiment.pb.h"
#include "tensor/shape.h"

namespace thinwire {

// The smallest messages of one direction of a cut: a microbatch's, that of the last batch, or that
// of the last evaluation batch.
struct SmallestMessage {
  std::string cut;
  bool gradient = false;
  DirectionSpec does;
  Shape train, coded;  // in training; where the codec is used, so possibly in evaluation
};
// Checks that a direction's codec and feedback can carry a message of this shape. InvalidArgument
// names the parameter, the shape and what is wanted.
absl::Status CheckCarries(const DirectionSpec& does, const Shape& message);

// Returns the smallest message of each direction of each cut, the tied one included. `experiment`
// must be resolved, `partition` made from it.
absl::StatusOr<std::vector<SmallestMessage>> SmallestMessages(const Experiment& experiment,
                                                              const Partition& partition);

// Checks the smallest messages. InvalidArgument names the cut and the direction in these cases:
// - low_rank would factor a message with no more rows or columns than its rank;
// - ef_mixed_b would halve a scope that has a single entry in a training message;
// - rotation principal would have more channels than Axes allows;
// - outliers would be all channels, or the first position exact of messages that are no sequences.
absl::Status CheckSmallestMessages(const Experiment& experiment, const Partition& partition);

}  // namespace thinwire
