// The runs of a sweep: every variant with every value of every axis and every seed, each resolved
// and checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/sweep/sweep_file.h"
#include "proto/experiment.pb.h"

namespace thinwire {

struct SweepRun {
  std::string name;  // "topk10-seed1": of its folder
  std::string row;   // "topk10": the runs of a row differ in their seed alone
  uint64_t seed = 0;
  Experiment experiment;  // resolved; its name is the row's
};

// All runs of one seed before the next, so that rows can be compared early. A row is called by its
// variant and by what each axis sets, "topk_ratio-0.1", or by the experiment where there is
// neither. `overrides`, path=value, have the last word in all rows. `stages`: as of LoadExperiment.
// InvalidArgument names the row and what is wrong with it: a refused experiment, a name that is no
// folder's or that another row has, a baseline that is no row.
absl::StatusOr<std::vector<SweepRun>> ExpandRuns(const Sweep& sweep,
                                                 const std::vector<std::string>& overrides,
                                                 uint32_t stages);

// Leaves the runs of rows whose whole name matches. InvalidArgument where none does, or where
// `pattern` is no regular expression (POSIX, extended).
absl::Status KeepOnly(const std::string& pattern, std::vector<SweepRun>* runs);

// The rows of these runs, each once, in order.
std::vector<std::string> RowsOf(const std::vector<SweepRun>& runs);

}  // namespace thinwire
