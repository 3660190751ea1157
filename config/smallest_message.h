// What must hold of the smallest message that a run sends, so that it fails before it starts and
// not with the last batch of an epoch.
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

// The smallest messages of one direction of a cut: a microbatch's, the last batch's, or
// evaluation's last one.
struct SmallestMessage {
  std::string cut;
  bool gradient = false;
  DirectionSpec does;
  Shape train, coded;  // in training; where the codec is at work, in evaluation too
};
// Lists the smallest message of each direction of each cut, the tied one included. `experiment` is
// resolved, `partition` made from it.
absl::StatusOr<std::vector<SmallestMessage>> SmallestMessages(const Experiment& experiment,
                                                              const Partition& partition);

// InvalidArgument naming cut and direction where low_rank is to factor a message with no more rows
// or columns than its rank; where ef_mixed_b has a single entry of a training message's scope to
// halve; and where rotation principal has more channels than Axes takes.
absl::Status CheckSmallestMessages(const Experiment& experiment, const Partition& partition);

}  // namespace thinwire
