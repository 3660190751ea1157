// Setup of leased stages as a pipeline that can train.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Returns the compute threads of each stage: pipeline.threads, or for `auto` what the answers of
// Acquire allow.
std::vector<int> StageThreads(const Experiment& experiment, Fleet* fleet,
                              const std::vector<AcquireResponse>& answers);

// Result of ConfigureStages.
struct Configured {
  ConfigureResponse data;           // from the first stage
  uint64_t parameters = 0;          // trainable elements of all stages
  std::vector<DeviceInfo> devices;  // by stage
};
// Configures all stages and connects each to the next. FailedPrecondition names both stages if they
// read different data. May be called again with another experiment.
absl::StatusOr<Configured> ConfigureStages(const Experiment& experiment,
                                           const std::vector<int>& threads, Fleet* fleet,
                                           const StagePurpose& purpose = {});

}  // namespace thinwire
