// Defaults and checks of an experiment's `capture`.
#pragma once

#include "absl/status/status.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Fills in defaults and checks all values; the rest of `experiment` must be resolved.
// InvalidArgument names the field, the value met and what is wanted; for example for a step after
// the run's last one, or tensors of more than limit_bytes.
absl::Status ResolveCapture(const Experiment& experiment, CaptureConfig* capture);

}  // namespace thinwire
