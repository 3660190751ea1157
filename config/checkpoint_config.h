// The config.json beside a checkpoint, in which Hugging Face's transformers says what model it is:
// read for `init`, written beside the models of runs.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Fills the fields of `model` that are absent in an experiment with `init` from the config.json in
// that folder; nothing where there is none. A size that the model's name tells (gpt2-medium) is not
// absent. InvalidArgument names the file, its key, the value met and those wanted.
absl::Status FillFromCheckpoint(Experiment* experiment);

// InvalidArgument if the model of a resolved experiment is another than that of the config.json in
// its `init`: names the field, its value, the file, the key and its value.
absl::Status CheckAgainstCheckpoint(const Experiment& experiment);

// InvalidArgument if the model of a resolved experiment, whose `classes` are those of the
// config.json in its `init`, has more ids than its text, and not by padding: the text is not in the
// checkpoint's vocabulary then. A folder with a vocabulary of its own tells more, and is for others
// to compare (data/vocabulary_files.h).
absl::Status CheckIdsOfCheckpoint(const Experiment& experiment);

// The config.json with which transformers loads the model of a resolved experiment, with what that
// in its `init` says besides (tokens of a meaning of their own, who made it); empty for a model
// that transformers does not know.
absl::StatusOr<std::string> CheckpointConfig(const Experiment& experiment);

}  // namespace thinwire
