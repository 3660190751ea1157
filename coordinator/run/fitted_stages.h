// An experiment made to fit into the memory of the servers that carry its stages.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Server of a stage, and what programs on its host can still allocate. Servers of one host share
// it.
struct ServerMemory {
  int stage = 0;
  std::string host;
  uint64_t bytes = 0;
};

// Returns the experiment in which each block does what pipeline.memory leaves room for
// (coordinator/plan/memory_plan.h), with speeds that are assumed: so equal limits give equal
// results. `auto` never uses a stash that changes numbers, as what hosts have left may change
// within a run. `carriers` is the number of pipelines; `tell` gets a line on what blocks do, and
// may be null. Returns the experiment as it is without pipeline.memory. Returns the errors of
// FitMemory.
absl::StatusOr<Experiment> FitToServers(const Experiment& experiment, int carriers,
                                        const std::vector<ServerMemory>& servers,
                                        const std::function<void(const std::string&)>& tell);

}  // namespace thinwire
