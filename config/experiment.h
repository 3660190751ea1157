// Experiment files: a YAML file and `--set` overrides in, a checked message that says everything
// out. What may stand in a file: docs/experiment_file.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Reads the file, applies the overrides ("compression.activations.codec=topk") and resolves
// (config/resolve.h), with a model to start from by what its config.json says
// (config/checkpoint_config.h). Of overrides to one field the last wins. An override that chooses
// another codec, data set, model, optimizer or learning-rate schedule drops what the file or an
// earlier override says for the former one; other overrides of the same entry are kept, whatever
// their order. An override that makes another corpus of the data drops its size.
// `stages`: of the pipeline where neither the file nor an override says; 0: cuts + 1.
// NotFound for a file that cannot be read; InvalidArgument names the file and the line, or the
// override, the field's path, the value met and those wanted.
absl::StatusOr<Experiment> LoadExperiment(const std::string& path,
                                          const std::vector<std::string>& overrides,
                                          uint32_t stages = 0);

// The same for the text of a file, which errors call `source`.
absl::StatusOr<Experiment> ParseExperiment(const std::string& text, const std::string& source,
                                           const std::vector<std::string>& overrides,
                                           uint32_t stages = 0);

// A file that ParseExperiment turns into an equal message, for a resolved experiment.
std::string ToYaml(const Experiment& experiment);

}  // namespace thinwire
