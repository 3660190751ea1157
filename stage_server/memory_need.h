// Whether a stage fits into memory, before any of it is taken: an allocation that the system grants
// and cannot back ends the process.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "stage_server/stage/stage.h"

namespace thinwire {

// Bytes of the stage's parameters, gradients, optimizer and what is kept for backward, as
// models/cost.h estimates them.
uint64_t TrainingBytesOf(const StageSpec& spec);

// ResourceExhausted naming stage, bytes wanted and bytes there are.
absl::Status CheckFits(const StageSpec& spec, uint64_t available_bytes);

}  // namespace thinwire
