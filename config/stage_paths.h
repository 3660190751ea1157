// The fields of an experiment with paths on the machine of a stage.
#pragma once

#include <string>
#include <vector>

#include "proto/experiment.pb.h"

namespace thinwire {

// One such field.
struct StagePath {
  std::string field;   // "compression.boundaries.layer1.gradients.plugin"
  std::string* value;  // points into the experiment; not empty
};

// All such fields, by their use.
struct StagePaths {
  std::vector<StagePath> plugins;  // libraries of codecs
  std::vector<StagePath> data;     // what the data set is read from
  std::vector<StagePath> state;    // folders for rows of feedback
};

// Returns those that the experiment sets.
StagePaths StagePathsOf(Experiment* experiment);

}  // namespace thinwire
