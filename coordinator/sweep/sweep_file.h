// A sweep as its file or a command line describes it: one experiment, what is varied in it, and the
// seeds. docs/sweeps.md is the users' page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thinwire {

// A field that is set, and where that was said.
struct SweepSetting {
  std::string path;   // "compression.activations.codec"
  std::string value;  // in YAML, on one line
  std::string place;  // "sweep.yaml:7: "
};

// A named set of fields.
struct SweepVariant {
  std::string name;
  std::vector<SweepSetting> settings;
  std::string place;
};

struct Sweep {
  std::string name;    // of its folder: the file's, without the ending, where it says none
  std::string text;    // of the experiment
  std::string source;  // what errors call that text
  std::vector<SweepVariant> variants;           // `rows`; empty: the experiment as it stands
  std::vector<std::vector<SweepSetting>> axes;  // each with all values of one field
  std::vector<uint64_t> seeds;                  // empty: the experiment's own
  std::string baseline;  // the row that others are compared to; empty: the first
};

// The sweep in a file: one with the field `experiment`, or an experiment file, which is a sweep
// with nothing varied. NotFound or InvalidArgument names the file and line, the value met and those
// wanted: a field that sweeps and experiments lack, an axis without values, one that stands twice,
// a seed that does.
absl::StatusOr<Sweep> ReadSweep(const std::string& path);

// Adds an axis of `--grid FIELD=VALUE,VALUE`, values in YAML.
absl::Status AddGrid(const std::string& grid, Sweep* sweep);

// Replaces the seeds by those of `--seeds`, whole numbers below 2^63, none twice.
absl::Status SetSeeds(const std::vector<std::string>& seeds, Sweep* sweep);

}  // namespace thinwire
