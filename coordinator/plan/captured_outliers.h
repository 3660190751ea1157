// Outliers among captured activations (compress/checks/outliers.h), and the setting of codecs that
// the user should hear of.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/safetensors.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Returns what FindOutliers finds in the activations of a capture, by cut: of each cut the tensor
// that comes first. Cuts without outliers are left out. InvalidArgument names a tensor that is no
// activation of fp32 or bf16.
absl::StatusOr<std::map<std::string, std::string>> OutliersOf(const Safetensors& capture);

// Returns a warning for each cut at which a run captured outliers and the activations' codec in the
// resolved `experiment` gets them. `dir` is the run's folder; without captures there are none.
absl::StatusOr<std::vector<std::string>> OutlierWarnings(const std::string& dir,
                                                         const Experiment& experiment);

// Returns such lines, without the word warning, of what stages captured of a step. `files` are
// captures in memory; empty ones are left out. InvalidArgument for what is no such file.
absl::StatusOr<std::vector<std::string>> OutliersOfStep(uint64_t step,
                                                        const std::vector<std::string>& files,
                                                        const Experiment& experiment);

// Returns the warnings for the run's own experiment. NotFound if no run is recorded in `dir`.
absl::StatusOr<std::vector<std::string>> OutlierWarningsOfRun(const std::string& dir);

}  // namespace thinwire
