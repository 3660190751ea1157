// The time and the traffic after which a run reached a target.
#pragma once

#include <optional>

#include "coordinator/report/configurations.h"

namespace thinwire {

// Value that an evaluation has to reach.
struct ReportTarget {
  double value = 0;
  Inference inference = Inference::kCompressed;
  Measure measure = Measure::kAccuracy;
};

// Cost of training until the target was reached.
struct Reached {
  uint32_t epoch = 0;
  double seconds = 0;     // of training up to that epoch's end, without evaluation and start-up
  double wire_bytes = 0;  // sent in training until then
};

// Returns the first evaluated epoch that reaches the target and whose next evaluated epoch reaches
// it too. The last evaluated epoch needs no confirmation. Returns nothing if there is none.
std::optional<Reached> FirstReached(const ReportedRun& run, const ReportTarget& target);

}  // namespace thinwire
