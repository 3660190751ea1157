// Setup of leased stages as a pipeline that can train, with the compute threads of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Host of a stage; stages with the same host share its cores.
struct StageHost {
  std::string host;
  int cores = 1;  // cores that the stage may use
};

// Returns the threads of each stage. `threads` is the experiment's pipeline.threads: a number, the
// same for all, or "auto". "auto" divides a host's cores among those of its stages that can compute
// at once; each gets at least 1. At most as many stages as there are microbatches compute at once:
// with one microbatch, stages take turns and each gets all cores.
std::vector<int> ThreadsPerStage(const std::string& threads, int microbatches,
                                 const std::vector<StageHost>& stages);

// Returns "10.0.0.7" for "10.0.0.7:4711"; every Unix socket is on the host "".
std::string HostOf(const std::string& address);

// Returns the compute threads of each server: pipeline.threads, or for `auto` what the answers of
// Acquire allow. All carriers of a stage have as many.
std::vector<int> StageThreads(const Experiment& experiment, Fleet* fleet,
                              const std::vector<AcquireResponse>& answers);

// Result of ConfigureStages.
struct Configured {
  ConfigureResponse data;           // from the first stage
  uint64_t parameters = 0;          // trainable elements of all stages
  std::vector<DeviceInfo> devices;  // by server
  std::vector<bool> are_kept;       // by server: it goes on with what it kept
};
// Configures all stages and connects each to the next, and the carriers of a stage to each other.
// FailedPrecondition names two stages that read different data, and two carriers of a stage that
// compute on different devices. May be called again with another experiment.
absl::StatusOr<Configured> ConfigureStages(const Experiment& experiment,
                                           const std::vector<int>& threads, Fleet* fleet,
                                           const StagePurpose& purpose = {});

}  // namespace thinwire
