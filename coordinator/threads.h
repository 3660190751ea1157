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
// host's cores shared by its stages, at least 1.
std::vector<int> ThreadsPerStage(const std::string& threads, const std::vector<StageHost>& stages);

// "10.0.0.7:4711" -> "10.0.0.7"; every Unix socket is on the host "".
std::string HostOf(const std::string& address);

}  // namespace thinwire
