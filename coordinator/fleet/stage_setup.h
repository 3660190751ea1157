// Setup of leased stages as a pipeline that can train.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Returns the compute threads of each server: pipeline.threads, or for `auto` what the answers of
// Acquire allow. All carriers of a stage have as many.
std::vector<int> StageThreads(const Experiment& experiment, Fleet* fleet,
                              const std::vector<AcquireResponse>& answers);

// Result of ConfigureStages.
struct Configured {
  ConfigureResponse data;           // from the first stage
  uint64_t parameters = 0;          // trainable elements of all stages
  std::vector<DeviceInfo> devices;  // by server
};
// Configures all stages and connects each to the next, and the carriers of a stage to each other.
// FailedPrecondition names two stages that read different data, and two carriers of a stage that
// compute on different devices. May be called again with another experiment.
absl::StatusOr<Configured> ConfigureStages(const Experiment& experiment,
                                           const std::vector<int>& threads, Fleet* fleet,
                                           const StagePurpose& purpose = {});

}  // namespace thinwire
