// Where what blocks keep waits for their backward passes: pipeline.swap.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/enum_names.h"
#include "proto/experiment.pb.h"

namespace thinwire {

enum class SwapTo {
  kDevice,  // the stage's device: it does not leave
  kHost,    // the memory of a GPU's host
  kDisk     // a file beside the stage server
};

// Returns the names "device", "host" and "disk" (base/enum_names.h).
NameTable<SwapTo> TableOf(SwapTo);

// Checks pipeline.swap of a resolved experiment.
absl::Status CheckSwap(const Experiment& experiment);

// Returns where it waits, in a resolved experiment.
absl::StatusOr<SwapTo> SwapFrom(const Experiment& experiment);

}  // namespace thinwire
