// Speeds for a plan, taken from what a run measured.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/plan/speeds.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Adds those of a run of the experiment `ran` that ended with `summary`. A run counts bytes once
// for each receiver, and seconds where a machine encodes and decodes; here both are of the same
// bytes. Codecs are left out that decoded nothing, or that only some segments had.
absl::Status AddExchangeSpeeds(const Summary& summary, const Experiment& ran,
                               std::map<Coding, CodingSpeed>* codings);

// Reads summary.json and experiment.yaml in the folder `dir` of a run. The seconds of each segment
// are divided among its blocks by their FLOPs; those of backward passes are scaled by FLOPs where
// the experiment freezes other blocks. The seconds and payloads of its codecs go to the
// same codings of the resolved `experiment`; other codings are left out. InvalidArgument or
// NotFound, with the folder's name, if the folder holds no run, if the run trained another model,
// or if it measured nothing.
absl::StatusOr<Speeds> SpeedsOfRun(const std::string& dir, const Experiment& experiment);

// Does the same for a run that ended with `summary`, of the experiment `ran`. Errors call the run
// `name`.
absl::StatusOr<Speeds> SpeedsOf(const Summary& summary, const Experiment& ran,
                                const Experiment& experiment, const std::string& name);

// Returns the device and the processor that the run's first stage computed on.
std::string MachineOf(const Summary& summary);

}  // namespace thinwire
