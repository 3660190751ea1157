// Two runs, or two sets of runs, held against each other: what differs in their experiments, where
// their losses part, what each epoch gave.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// "runs/a" or a folder of such folders, as a sweep's is, with what pairs its runs.
struct RunSet {
  struct Run {
    std::string row;   // "topk10" of "topk10-seed1"; "" of a folder that is one run
    std::string name;  // of its folder
    std::string dir;
  };
  std::string dir;
  bool is_one = false;    // the folder is a run's own
  std::vector<Run> runs;  // by name
};

// NotFound where neither a run nor a set of them stands in `dir`.
absl::StatusOr<RunSet> FindRuns(const std::string& dir);

// The text of `thinwire compare`. Runs pair by row and seed; two single runs pair anyway. Errors of
// what is read, and InvalidArgument where no run of one pairs with one of the other.
absl::StatusOr<std::string> Comparison(const RunSet& left, const RunSet& right);

}  // namespace thinwire
