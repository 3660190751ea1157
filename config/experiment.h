// Experiment files: a YAML file and `--set` overrides become a checked message in which every field
// has its value. docs/experiment_file.md describes the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Context that fills fields which an experiment leaves open.
struct Surroundings {
  // Number of stages of the pipeline, as there are that many servers; 0: cuts + 1.
  uint32_t stages = 0;
  // Earlier run that this experiment continues, or whose model it uses; null: none. Its cuts stay
  // wherever the experiment leaves them to the program, if there are enough stages. Its model is
  // known, so the folder of `init` is not read.
  const Experiment* past = nullptr;
};

// Reads the file, applies the overrides ("compression.activations.codec=topk") and resolves the
// experiment (config/resolve.h). For a model to start from, it uses that model's config.json
// (config/checkpoint_config.h).
//
//
// If several overrides set one field, the last counts. An override that chooses another codec, data
// set, model, optimizer or learning rate schedule drops what the file or an earlier override says
// for the former one. Other overrides of the same entry are kept, whatever their order. An override
// that changes the data's corpus drops its size. With overrides, those fields of a resolved file
// that nobody gave are derived again (config/derived.h); without, they are read unchanged. Paths of
// the coordinator's machine become absolute.
//
//
// NotFound for a file that cannot be read. InvalidArgument names the file and the line, or the
// override, the field's path, the value met and those wanted.
absl::StatusOr<Experiment> LoadExperiment(const std::string& path,
                                          const std::vector<std::string>& overrides,
                                          const Surroundings& surroundings = {});

// Does the same for the text of a file; errors call it `source`.
absl::StatusOr<Experiment> ParseExperiment(const std::string& text, const std::string& source,
                                           const std::vector<std::string>& overrides,
                                           const Surroundings& surroundings = {});

// Reads a resolved experiment unchanged, for example the one that a run has recorded. Nothing
// besides the text is read: the folder of `init` may be gone or hold another model.
absl::StatusOr<Experiment> ParseResolved(const std::string& text, const std::string& source);
// Does the same for a file. NotFound if it cannot be read.
absl::StatusOr<Experiment> ReadResolved(const std::string& path);

// Returns the name that the experiment would have; the rest is not checked. Errors of
// LoadExperiment.
absl::StatusOr<std::string> NameOfExperiment(const std::string& path,
                                             const std::vector<std::string>& overrides);

// Returns a file from which ParseExperiment makes an equal message, for a resolved experiment.
std::string ToYaml(const Experiment& experiment);

}  // namespace thinwire
