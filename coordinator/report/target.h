// How soon a run reached a target.
#pragma once

#include <optional>

#include "coordinator/report/configurations.h"

namespace thinwire {

struct ReportTarget {
  double value = 0;
  Inference inference = Inference::kCompressed;
  Measure measure = Measure::kAccuracy;
};

struct Reached {
  uint32_t epoch = 0;
  double seconds = 0;     // of training up to that epoch's end, without evaluation and start-up
  double wire_bytes = 0;  // sent in training until then
};

// The first evaluated epoch whose value reaches the target and whose next evaluated epoch does,
// too; the last one has no next and needs none.
std::optional<Reached> FirstReached(const ReportedRun& run, const ReportTarget& target);

}  // namespace thinwire
