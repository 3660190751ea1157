// What a run left in its folder (docs/results_format.md), read back.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace thinwire {

struct RunFiles {
  std::string experiment;                             // experiment.yaml
  nlohmann::ordered_json summary;                     // summary.json
  std::vector<nlohmann::ordered_json> steps, epochs;  // lines of metrics.jsonl, in their order
};

// NotFound where the folder has no summary. InvalidArgument names the file, and the line, that is
// not what a run writes; a last line without its end is left out.
absl::StatusOr<RunFiles> ReadRunFiles(const std::string& dir);

// summary.json alone; errors likewise.
absl::StatusOr<nlohmann::ordered_json> ReadRunSummary(const std::string& dir);

}  // namespace thinwire
