// How many compute threads each stage gets.
#pragma once

#include <string>
#include <vector>

namespace thinwire {

// Where a stage runs: stages with the same host share its cores.
struct StageHost {
  std::string host;
  int cores = 1;  // that the stage may use
};

// `threads` is the experiment's pipeline.threads: a number, the same for all, or "auto": the
// host's cores shared by those of its stages that can compute at once, at least 1. No more stages
// than there are microbatches compute at once: with one, stages take turns and each gets all cores.
std::vector<int> ThreadsPerStage(const std::string& threads, int microbatches,
                                 const std::vector<StageHost>& stages);

// "10.0.0.7:4711" -> "10.0.0.7"; every Unix socket is on the host "".
std::string HostOf(const std::string& address);

}  // namespace thinwire
