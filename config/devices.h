// The device of each stage, and options of its computation.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/ops.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Fills in `device` and checks it against pipeline.stages, which must be set, and against
// `precision`. InvalidArgument names field, value met and those wanted. Only the stage server can
// tell whether a machine has the device.
absl::Status ResolveDevices(Experiment* experiment);

// Returns the device that stage `stage` asks for: "auto", "cpu", "cuda", "cuda:1". InvalidArgument
// if several devices are given and none for that stage.
absl::StatusOr<std::string> DeviceOf(const Experiment& experiment, int stage);

OpsOptions OpsOptionsFrom(const Experiment& experiment);

}  // namespace thinwire
