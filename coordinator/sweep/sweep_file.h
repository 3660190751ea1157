// A sweep as a file or a command line describes it: one experiment, its variations and the seeds.
// And its runs: every combination of variant, axis values and seed, resolved and checked.
// docs/sweeps.md is the users' page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// A field's value, and where it was given.
struct SweepSetting {
  std::string path;   // "compression.activations.codec"
  std::string value;  // YAML on one line
  std::string place;  // "sweep.yaml:7: "
};

// A named set of fields.
struct SweepVariant {
  std::string name;
  std::vector<SweepSetting> settings;
  std::string place;
};

// A sweep before it is expanded to runs.
struct Sweep {
  // Name of its folder; if the file gives none, the file's name without extension.
  std::string name;
  std::string text;                             // text of the experiment
  std::string source;                           // name of that text in errors
  std::vector<SweepVariant> variants;           // field `rows`; empty: the experiment unchanged
  std::vector<std::vector<SweepSetting>> axes;  // all values of one field each
  std::vector<uint64_t> seeds;                  // empty: the experiment's own
  std::string baseline;                         // row that others are compared to; empty: the first
};

// Reads a sweep. The file has a field `experiment`, or it is an experiment file, which is a sweep
// without variations. NotFound, or InvalidArgument with file, line, the value met and those wanted:
// a field unknown to sweeps and experiments, an axis without values, an axis or a seed given twice.
absl::StatusOr<Sweep> ReadSweep(const std::string& path);

// Adds an axis from `--grid FIELD=VALUE,VALUE`, values in YAML.
absl::Status AddGrid(const std::string& grid, Sweep* sweep);

// Replaces the seeds by those of `--seeds`: whole numbers below 2^63, none twice.
absl::Status SetSeeds(const std::vector<std::string>& seeds, Sweep* sweep);

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
