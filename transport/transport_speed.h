// What messages between processes take of this machine, measured now.
#pragma once

#include "absl/status/statusor.h"
#include "schedule/simulator.h"

namespace thinwire {

// Between the ends of a boundary over TCP in this process, for about half a second: messages of one
// number and large ones, sent and received as stages do, each answered by an empty one, while all
// cores compute. What both take is the processor's time, with the waking of threads. Errors of the
// sockets or of the boundary.
absl::StatusOr<TransportCost> MeasureTransport();

}  // namespace thinwire
