// On which device each stage computes, and how it may.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/ops.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Fills `device` and checks it against pipeline.stages, which is set, and against `precision`.
// InvalidArgument names field, value met and those wanted. Whether a machine has the device is for
// its stage server to say.
absl::Status ResolveDevices(Experiment* experiment);

// What stage `stage` asks for: "auto", "cpu", "cuda", "cuda:1". InvalidArgument if there are
// several devices and none for that stage.
absl::StatusOr<std::string> DeviceOf(const Experiment& experiment, int stage);

OpsOptions OpsOptionsFrom(const Experiment& experiment);

}  // namespace thinwire
