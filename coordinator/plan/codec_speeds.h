// Speed and compression of codecs on tensors like those that cross an experiment's cuts, measured
// on this machine.
#pragma once

#include <map>

#include "absl/status/status.h"
#include "coordinator/plan/speeds.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Measures the codings of the resolved `experiment` that `codings` lacks and adds them: at every
// cut, the tied one included, in both directions, of what replicas exchange, of what
// tensor-parallel parts add up and of what blocks keep in a stash. Those that send
// tensors unchanged are left out. A codec with a level schedule stands with its last level. Each is
// measured on one thread with a synthetic message, which is encoded and decoded, feedback included.
// The message has the shape of a microbatch, or as many samples as make 2 MiB. Its values are
// normally distributed; those of activations behind a ReLU have their negative values set to 0.
// Each coding takes some hundredths of a second. Errors of the codec name the cut and the
// direction.
absl::Status MeasureCodings(const Experiment& experiment, std::map<Coding, CodingSpeed>* codings);

// Measures the seconds that a byte takes in a digest, on one thread.
double MeasureDigest();

}  // namespace thinwire
