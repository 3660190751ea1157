// The fields of an experiment that name files or folders of the machine on which a stage runs.
#pragma once

#include <string>
#include <vector>

#include "proto/experiment.pb.h"

namespace thinwire {

struct StagePath {
  std::string field;   // "compression.boundaries.layer1.gradients.plugin"
  std::string* value;  // within the experiment; not empty
};

struct StagePaths {
  std::vector<StagePath> plugins;  // libraries of codecs
  std::vector<StagePath> data;     // what the data set is read from
  std::vector<StagePath> state;    // folders for rows of feedback
};

// Those that the experiment gives.
StagePaths StagePathsOf(Experiment* experiment);

}  // namespace thinwire
