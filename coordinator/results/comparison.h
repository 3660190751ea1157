// Comparison of two runs or two sets of runs: differences of their experiments, the step where
// their losses part, the results of each epoch.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// A run's folder, "runs/a", or a folder of such folders, as a sweep makes it.
struct RunSet {
  struct Run {
    // "topk10" of "topk10-seed1", by which runs pair; "" if the folder is a single run.
    std::string row;
    std::string name;  // name of its folder
    std::string dir;
  };
  std::string dir;
  bool is_one = false;    // True if the folder is a run's own.
  std::vector<Run> runs;  // in the order of names
};

// Finds the runs in `dir`. NotFound if it holds neither a run nor a set of runs.
absl::StatusOr<RunSet> FindRuns(const std::string& dir);

// Returns the text of `thinwire compare`. Runs pair by row and seed; two single runs pair anyway.
// Returns reading errors, and InvalidArgument if no run of `left` pairs with one of `right`.
absl::StatusOr<std::string> Comparison(const RunSet& left, const RunSet& right);

}  // namespace thinwire
