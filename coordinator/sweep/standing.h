// State of a sweep's run on the disk.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

enum class Standing {
  kAbsent,      // nothing, or what was interrupted before the run began
  kUnfinished,  // it began, and can continue from its checkpoints
  kFinished,    // its summary says completed, with every epoch
};

// Returns the state of the run in `folder`, which should be a run of the resolved experiment
// `wanted`. InvalidArgument if it is another experiment's: names the folder and the first field
// that differs, with both values.
absl::StatusOr<Standing> StandingOf(const std::string& folder, const Experiment& wanted);

}  // namespace thinwire
