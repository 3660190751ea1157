// What stands of a sweep's run on the disk.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

enum class Standing {
  kAbsent,      // nothing, or what was broken off before the run began
  kUnfinished,  // it began; its checkpoints are what it goes on from
  kFinished,    // its summary says completed, with every epoch
};

// Of the run in `folder`, which is to be of the resolved experiment `wanted`. InvalidArgument where
// it is of another one: names the folder, and the first field that differs with both values.
absl::StatusOr<Standing> StandingOf(const std::string& folder, const Experiment& wanted);

}  // namespace thinwire
