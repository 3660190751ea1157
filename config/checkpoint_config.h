// The config.json beside a checkpoint, which describes the model to Hugging Face's transformers. It
// is read for `init` and written beside the models of runs.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Fills in those fields of `model` that an experiment with `init` leaves absent, from the
// config.json in that folder; does nothing if there is none. A size that the model's name implies
// (gpt2-medium) is not absent. InvalidArgument names the file, its key, the value met and those
// wanted.
absl::Status FillFromCheckpoint(Experiment* experiment);

// Returns InvalidArgument if the model of a resolved experiment differs from that of the
// config.json in its `init`: names the field, its value, the file, the key and its value.
absl::Status CheckAgainstCheckpoint(const Experiment& experiment);

// Returns InvalidArgument if the model of a resolved experiment has more token ids than its text,
// and by more than padding explains: then the text does not use the checkpoint's vocabulary. The
// model's `vocabulary`, or its `classes` without one, must be that of the config.json in `init`. If
// that folder has a vocabulary of its own, nothing is checked here, as comparing the vocabularies
// tells more (data/vocabulary_files.h).
absl::Status CheckIdsOfCheckpoint(const Experiment& experiment);

// Returns the config.json with which transformers loads the model of a resolved experiment. It
// keeps what the one in `init` says besides (special tokens, authors). Empty for a model that
// transformers does not know.
absl::StatusOr<std::string> CheckpointConfig(const Experiment& experiment);

}  // namespace thinwire
