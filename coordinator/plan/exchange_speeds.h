// Speeds of the codecs of what replicas exchange, taken from what a run measured.
#pragma once

#include <map>

#include "absl/status/status.h"
#include "coordinator/plan/speeds.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Adds those of a run of the experiment `ran` that ended with `summary`. A run counts bytes once
// for each receiver, and seconds where a machine encodes and decodes; here both are of the same
// bytes. Codecs are left out that decoded nothing, or that only some segments had.
absl::Status AddExchangeSpeeds(const Summary& summary, const Experiment& ran,
                               std::map<Coding, CodingSpeed>* codings);

}  // namespace thinwire
