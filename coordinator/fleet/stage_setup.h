// From leased stages to a pipeline that can train.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Compute threads of each stage: pipeline.threads, `auto` by what Acquire answered.
std::vector<int> StageThreads(const Experiment& experiment, Fleet* fleet,
                              const std::vector<AcquireResponse>& answers);

struct Configured {
  ConfigureResponse data;           // of the first stage
  uint64_t parameters = 0;          // trainable elements of all stages
  std::vector<DeviceInfo> devices;  // by stage
};
// Configures all stages and connects each with the next. FailedPrecondition, naming both, when
// stages read different data. May be called again with another experiment.
absl::StatusOr<Configured> ConfigureStages(const Experiment& experiment,
                                           const std::vector<int>& threads, Fleet* fleet,
                                           const StagePurpose& purpose = {});

}  // namespace thinwire
