// What a run left in its folder (docs/results_format.md), read back.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "proto/coordinator.pb.h"

namespace thinwire {

struct MetricsFile {
  std::vector<nlohmann::ordered_json> steps;  // objects with numbers `epoch` and `step`
  std::vector<EpochRecord> epochs;
};

struct RunFiles {
  std::string experiment;  // experiment.yaml
  Summary summary;
  MetricsFile metrics;
  // Objects of TrafficRecord; none of a run whose program did not write them.
  std::vector<nlohmann::ordered_json> traffic;
};

// The lines of metrics.jsonl in their order, but a last one without its end. NotFound where the
// folder has no such file. InvalidArgument names the line that is not what a run writes.
absl::StatusOr<MetricsFile> ReadMetricsFile(const std::string& dir);

// NotFound where the folder has no summary; errors of ReadSummary, and of the lines of
// traffic.jsonl as of ReadMetricsFile.
absl::StatusOr<RunFiles> ReadRunFiles(const std::string& dir);

// "topk10" of "topk10-seed1"; a name without a seed as it is.
std::string WithoutSeed(const std::string& name);

}  // namespace thinwire
