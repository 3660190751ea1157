// Reading of the files in a run's folder (docs/results_format.md).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "proto/coordinator.pb.h"

namespace thinwire {

struct MetricsFile {
  std::vector<nlohmann::ordered_json> steps;  // objects with the numbers `epoch` and `step`
  std::vector<EpochRecord> epochs;
  std::vector<EvaluationRecord> evaluations;  // after steps
};

struct RunFiles {
  std::string experiment;  // experiment.yaml
  Summary summary;
  MetricsFile metrics;
  // Objects of TrafficRecord; empty for a run of an older program, which did not write them.
  std::vector<nlohmann::ordered_json> traffic;
};

// Reads the lines of metrics.jsonl in order, without an incomplete last one. NotFound if the folder
// has no such file. InvalidArgument names a line that no run writes.
absl::StatusOr<MetricsFile> ReadMetricsFile(const std::string& dir);

// Reads the files of a run. NotFound if the folder has no summary; errors of ReadSummary, and for
// the lines of traffic.jsonl those of ReadMetricsFile.
absl::StatusOr<RunFiles> ReadRunFiles(const std::string& dir);

// Returns "topk10" for "topk10-seed1"; a name without a seed is unchanged.
std::string WithoutSeed(const std::string& name);

}  // namespace thinwire
