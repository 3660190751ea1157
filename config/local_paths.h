// Paths of an experiment, so that they mean the same wherever a program stands that reads it later.
#pragma once

#include "proto/experiment.pb.h"

namespace thinwire {

// Makes the paths of the coordinator's machine absolute (base/path.h): `init` and the files of
// `security`.
void MakeCoordinatorPathsAbsolute(Experiment* experiment);

// The same for the paths of a stage's machine, where that is this one.
void MakeStagePathsAbsolute(Experiment* experiment);

}  // namespace thinwire
