// Checks that a stage fits into memory before any of it is allocated. An allocation that the system
// grants but cannot back ends the process.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "stage_server/stage/stage.h"

namespace thinwire {

// Returns the bytes of the stage's parameters, gradients, optimizer and what is kept for backward
// passes, as models/cost.h estimates them.
uint64_t TrainingBytesOf(const StageSpec& spec);

// Returns ResourceExhausted, naming stage, bytes wanted and bytes available, if the stage does not
// fit.
absl::Status CheckFits(const StageSpec& spec, uint64_t available_bytes);

}  // namespace thinwire
