// Turns what a user wrote into an experiment that says everything: every default stands here.
#pragma once

#include "absl/status/status.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Fills every absent field that has a meaning in this experiment (not `bits` of topk), turns
// `cuts: auto` into names, an uncut model into {"none"} and `augment: true` into per_epoch, gives
// each entry of compression.boundaries the general fields it leaves open, and checks every value.
// InvalidArgument names the field's path, the value met and those wanted; *experiment is then half
// resolved. A resolved experiment resolves to itself, so a stage server may check a coordinator's
// with this. `seeds` stays as given: what is absent there follows `seed` (config/specs.h).
absl::Status Resolve(Experiment* experiment);

}  // namespace thinwire
