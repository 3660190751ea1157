// What codecs do to tensors like those that cross an experiment's cuts, measured on this machine.
#pragma once

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/plan/speeds.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// The codings of the resolved `experiment`, at every cut, the tied one included, in both
// directions; without those that send tensors as they are. A codec with a level is that which it
// ends at.
absl::StatusOr<std::vector<Coding>> CodingsOf(const Experiment& experiment);

// Adds to `codings` what it lacks of the experiment's. Encodes and decodes, feedback included, on
// one thread, a synthetic message of a microbatch's shape, or of as many samples as make 2 MiB:
// normally distributed, activations behind a ReLU without what is negative. Some hundredths of a
// second for each. Errors of the codec name the cut and the direction.
absl::Status MeasureCodings(const Experiment& experiment, std::map<Coding, CodingSpeed>* codings);

}  // namespace thinwire
