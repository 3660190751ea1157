// The runs of a sweep: every combination of variant, axis values and seed, resolved and checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/sweep/sweep_file.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// One run.
struct SweepRun {
  std::string name;  // "topk10-seed1": name of its folder
  std::string row;   // "topk10": runs of one row differ in their seed alone
  uint64_t seed = 0;
  Experiment experiment;  // resolved; its name is the row's
};

// Returns all runs of one seed before those of the next, so that rows can be compared early. A row
// is named after its variant and what each axis sets, "topk_ratio-0.1", or after the experiment if
// there is neither. `overrides`, path=value, take precedence in all rows. `stages` is that of
// LoadExperiment. InvalidArgument names the row and the fault: a refused experiment, a name that
// cannot be a folder's or that another row has, a baseline that is no row.
absl::StatusOr<std::vector<SweepRun>> ExpandRuns(const Sweep& sweep,
                                                 const std::vector<std::string>& overrides,
                                                 uint32_t stages);

// Keeps only the runs of rows whose whole name matches `pattern`. InvalidArgument if none does, or
// if it is no regular expression (POSIX, extended).
absl::Status KeepOnly(const std::string& pattern, std::vector<SweepRun>* runs);

// Returns the rows of these runs, each once, in order.
std::vector<std::string> RowsOf(const std::vector<SweepRun>& runs);

}  // namespace thinwire
