// What must hold of the smallest message that a run sends, so that it fails before it starts and
// not with the last batch of an epoch.
#pragma once

#include "absl/status/status.h"
#include "config/specs.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// InvalidArgument naming cut and direction where low_rank is to factor a message (a microbatch's,
// the last batch's, or evaluation's last one) with no more rows or columns than its rank; where
// ef_mixed_b has a single entry of a training message's scope to halve; and where rotation
// principal has more channels than Axes takes. `experiment` is resolved, `partition` made from it.
absl::Status CheckSmallestMessages(const Experiment& experiment, const Partition& partition);

}  // namespace thinwire
