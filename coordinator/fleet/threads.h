// Distribution of compute threads to stages.
#pragma once

#include <string>
#include <vector>

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

}  // namespace thinwire
