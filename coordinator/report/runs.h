// Reading of runs' folders for a report.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

inline constexpr size_t kLossPoints = 200;  // most points of one run's loss curve

// Mean loss of a stretch of steps; `step` is the last of them.
struct LossPoint {
  double step = 0;
  double loss = 0;
};

// One run, read from its folder.
struct ReportedRun {
  std::string dir;
  std::string experiment;  // the resolved experiment, as YAML
  // For a run without a summary it has name, seed and complete epochs alone, and the status
  // kUnfinished.
  Summary summary;
  std::vector<LossPoint> losses;  // of training; steps whose loss is not a number are left out
};

// Status of a run that still goes on, or was killed.
inline constexpr char kUnfinished[] = "unfinished";

// Reads the runs in and below `paths`, in the order of `paths` and then by path; a run that is met
// twice is read once. NotFound names a path that does not exist or that has no run in or below it.
// InvalidArgument names a file that no run could have written, and its line. Other files beside
// runs are ignored.
absl::StatusOr<std::vector<ReportedRun>> ReadRuns(const std::vector<std::string>& paths);

}  // namespace thinwire
