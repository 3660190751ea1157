// Totals at the boundaries, merged from what the stages counted at their ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/fleet/pipelines.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Merges the newest report of every server. Not thread-safe.
class BoundaryTotals {
 public:
  // `cuts` are the names in model order. `before` is what was counted before these stages began;
  // records of cuts that no longer exist are dropped.
  BoundaryTotals(std::vector<std::string> cuts, const Pipelines& pipelines,
                 std::vector<BoundaryRecord> before = {});

  // Takes a report. Its `stage` is the server's index, carrier by carrier; unknown boundaries are
  // ignored.
  void Update(const StageReport& report);

  // Returns one record per cut, in model order, with both directions.
  std::vector<BoundaryRecord> Records() const;

  // Adds to `before`, which was counted before these stages began, what replicas exchanged since.
  ReplicasRecord Replicas(const ReplicasRecord& before) const;

  // Adds to `before`, likewise, what the stages' stashes encoded since.
  DirectionRecord Stash(const DirectionRecord& before) const;

  // Adds to `before`, likewise, what the stages' swaps moved since.
  SwapRecord Swap(const SwapRecord& before) const;

  // Returns the sum of the stages' seconds of forward and backward.
  double BusySeconds() const;

  // Returns the compute time of each stage, of all carriers together, for that much training.
  std::vector<ComputeRecord> Compute(uint64_t steps, uint64_t samples) const;

 private:
  std::vector<std::string> cuts_;
  std::vector<BoundaryRecord> before_;
  Pipelines pipelines_;
  std::vector<StageReport> latest_;  // newest report of each server
};

// Removes from the report what senders tell of single steps, and what its replicas exchanged in
// them, and returns it.
std::vector<TrafficRecord> TakeTraffic(StageReport* report);

// Returns what one epoch added to the records of all cuts. `before` are the records at its begin;
// empty for the first epoch.
std::vector<EpochBoundary> EpochBoundaries(const std::vector<BoundaryRecord>& before,
                                           const std::vector<BoundaryRecord>& after);

// Returns the same of what replicas exchanged.
EpochReplicas EpochOfReplicas(const ReplicasRecord& before, const ReplicasRecord& after);

// Returns raw bytes / wire bytes; 0 before the first message.
double CompressionRatio(const DirectionRecord& record);

}  // namespace thinwire
