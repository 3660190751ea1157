// Experiment files: a YAML file and `--set` overrides in, a checked message that says everything
// out. What may stand in a file: docs/experiment_file.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// What an experiment is read for, where that fills fields which it leaves open.
struct Surroundings {
  // Stages of the pipeline, as many as there are servers for; 0: cuts + 1.
  uint32_t stages = 0;
  // The run that goes on as this experiment, or whose model it uses; null: none. Its cuts stay
  // wherever the experiment lets the program choose and the stages suffice, and its model is known:
  // the folder of `init` is not read.
  const Experiment* past = nullptr;
};

// Reads the file, applies the overrides ("compression.activations.codec=topk") and resolves
// (config/resolve.h), with a model to start from by what its config.json says
// (config/checkpoint_config.h). Of overrides to one field the last wins. An override that chooses
// another codec, data set, model, optimizer or learning-rate schedule drops what the file or an
// earlier override says for the former one; other overrides of the same entry are kept, whatever
// their order. An override that makes another corpus of the data drops its size.
// With overrides, what a resolved file says of fields that nobody gave is worked out anew
// (config/derived.h); without, it is read as it stands. Paths of the coordinator's machine become
// absolute.
// NotFound for a file that cannot be read; InvalidArgument names the file and the line, or the
// override, the field's path, the value met and those wanted.
absl::StatusOr<Experiment> LoadExperiment(const std::string& path,
                                          const std::vector<std::string>& overrides,
                                          const Surroundings& surroundings = {});

// The same for the text of a file, which errors call `source`.
absl::StatusOr<Experiment> ParseExperiment(const std::string& text, const std::string& source,
                                           const std::vector<std::string>& overrides,
                                           const Surroundings& surroundings = {});

// Reads a resolved experiment as it stands, such as a run has recorded it. Nothing beside the text
// is read: the folder of `init` may be gone, or hold another model.
absl::StatusOr<Experiment> ParseResolved(const std::string& text, const std::string& source);
// The same for a file. NotFound for one that cannot be read.
absl::StatusOr<Experiment> ReadResolved(const std::string& path);

// The name that the experiment would have; the rest of it is not checked. Errors of LoadExperiment.
absl::StatusOr<std::string> NameOfExperiment(const std::string& path,
                                             const std::vector<std::string>& overrides);

// A file that ParseExperiment turns into an equal message, for a resolved experiment.
std::string ToYaml(const Experiment& experiment);

}  // namespace thinwire
