// What runs left in their folders, as a report wants it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

inline constexpr size_t kLossPoints = 200;  // of one run's curve, at most

// Mean loss of a stretch of steps, at its last one.
struct LossPoint {
  double step = 0;
  double loss = 0;
};

struct ReportedRun {
  std::string dir;
  std::string experiment;  // the resolved one, YAML
  // Of a run without a summary: its name, seed and complete epochs; the status is kUnfinished.
  Summary summary;
  std::vector<LossPoint> losses;  // of training; a step whose loss is not a number is left out
};

inline constexpr char kUnfinished[] = "unfinished";  // it is still running, or was killed

// The runs in and below `paths`, in that order and by path; one that is met twice stands once.
// NotFound names a path that does not exist, or below which there is no run; InvalidArgument a file
// that is not what a run writes, and its line. Whatever else stands beside runs is left aside.
absl::StatusOr<std::vector<ReportedRun>> ReadRuns(const std::vector<std::string>& paths);

}  // namespace thinwire
