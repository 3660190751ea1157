// The fields of an experiment that name files, and conversion of their paths to absolute ones, so
// that they mean the same in every working directory.
#pragma once

#include <string>
#include <vector>

#include "proto/experiment.pb.h"

namespace thinwire {

// A field with a path on the machine of a stage.
struct StagePath {
  std::string field;   // "compression.boundaries.layer1.gradients.plugin"
  std::string* value;  // points into the experiment; not empty
  // True if the path stands for files as data/file_list.h says.
  bool has_files = false;
};

// All such fields, by their use.
struct StagePaths {
  std::vector<StagePath> plugins;  // libraries of codecs
  std::vector<StagePath> data;     // what the data set and, at stages, the model are read from
  std::vector<StagePath> state;    // folders for rows of feedback
};

// Value of `init_at` for a folder on the machines of the stages.
inline constexpr char kAtStages[] = "stages";

// Returns whether each stage reads its own copy of the folder of `init`.
inline bool StagesReadInit(const Experiment& experiment) {
  return experiment.init_at() == kAtStages;
}

// Returns those that the experiment sets.
StagePaths StagePathsOf(Experiment* experiment);

// Makes the paths of the coordinator's machine absolute (base/path.h): `init`, unless stages read
// it, `lora.init` and the files of `security`.
void MakeCoordinatorPathsAbsolute(Experiment* experiment);

// Does the same for the paths of a stage's machine, if that is this machine.
void MakeStagePathsAbsolute(Experiment* experiment);

}  // namespace thinwire
