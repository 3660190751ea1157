// What the stages counted at their ends of the boundaries, put together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Names of the cuts of a resolved experiment, in model order, and of the tied cut behind them
// where it has one; empty for the uncut model.
std::vector<std::string> CutNames(const Experiment& experiment);

// Keeps the newest report of every stage. Not thread-safe.
class BoundaryTotals {
 public:
  // `cuts`: names in model order. `before`: what was counted before these stages began; of cuts
  // that are no more nothing is kept.
  BoundaryTotals(std::vector<std::string> cuts, int stages,
                 std::vector<BoundaryRecord> before = {});

  // `stage` in the report must be below `stages`; reports of unknown boundaries are left out.
  void Update(const StageReport& report);

  // One record per cut, in model order, both directions.
  std::vector<BoundaryRecord> Records() const;

  // Sum of the stages' seconds of forward and backward.
  double BusySeconds() const;

  // By stage, for so much training.
  std::vector<ComputeRecord> Compute(uint64_t steps, uint64_t samples) const;

 private:
  std::vector<std::string> cuts_;
  std::vector<BoundaryRecord> before_;
  std::vector<StageReport> latest_;  // by stage
};

// Takes what the senders tell of single steps out of the report.
std::vector<TrafficRecord> TakeTraffic(StageReport* report);

// What one epoch added to the records of all cuts. `before`: those of its begin, none in the first.
std::vector<EpochBoundary> EpochBoundaries(const std::vector<BoundaryRecord>& before,
                                           const std::vector<BoundaryRecord>& after);

// raw bytes / wire bytes; 0 before the first message.
double CompressionRatio(const DirectionRecord& record);

}  // namespace thinwire
