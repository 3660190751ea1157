// Defaults and checks of an experiment's `capture`.
#pragma once

#include "absl/status/status.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// The rest of `experiment` is resolved. InvalidArgument names the field, the value met and what is
// wanted: among others a step after the run's last one, and tensors of more than limit_bytes.
absl::Status ResolveCapture(const Experiment& experiment, CaptureConfig* capture);

}  // namespace thinwire
