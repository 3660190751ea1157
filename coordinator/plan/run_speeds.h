// What a run measured of itself, as the speeds of a plan.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/plan/speeds.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// From summary.json and experiment.yaml in the folder `dir` of a run. The seconds of each of its
// segments go to its blocks by their FLOPs, and its codecs' seconds and payloads to the same
// codings of the resolved `experiment`; other codings are left open. InvalidArgument, or NotFound,
// for a folder that holds no run, a run of another model than the experiment's, or one that
// measured nothing; each names the folder.
absl::StatusOr<Speeds> SpeedsOfRun(const std::string& dir, const Experiment& experiment);

// The same of a run that ended with `summary`; `name` is what errors call it.
absl::StatusOr<Speeds> SpeedsOf(const Summary& summary, const Experiment& ran,
                                const Experiment& experiment, const std::string& name);

// What the first stage of a run computed on, device and processor.
std::string MachineOf(const Summary& summary);

}  // namespace thinwire
