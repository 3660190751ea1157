// Conversion of an experiment's paths to absolute ones, so that they mean the same in every working
// directory.
#pragma once

#include "proto/experiment.pb.h"

namespace thinwire {

// Makes the paths of the coordinator's machine absolute (base/path.h): `init` and the files of
// `security`.
void MakeCoordinatorPathsAbsolute(Experiment* experiment);

// Does the same for the paths of a stage's machine, if that is this machine.
void MakeStagePathsAbsolute(Experiment* experiment);

}  // namespace thinwire
