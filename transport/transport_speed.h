// Measures what messages between processes cost on this machine.
#pragma once

#include "absl/status/statusor.h"
#include "schedule/simulator.h"

namespace thinwire {

// Measures for about half a second between the two ends of a boundary over TCP in this process,
// while all cores compute. It sends messages of one number and large ones, as stages do; each is
// answered by an empty one. What it measures is processor time, including the waking of threads.
// Returns errors of the sockets or of the boundary.
absl::StatusOr<TransportCost> MeasureTransport();

}  // namespace thinwire
