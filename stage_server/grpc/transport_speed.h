// What messages between processes take of this machine's processor, measured now.
#pragma once

#include "absl/status/statusor.h"
#include "schedule/simulator.h"

namespace thinwire {

// Between two ends of a link over TCP in this process, for about a quarter of a second: messages of
// nothing, which wake each other's end, and large ones. Errors of the sockets or of the link.
absl::StatusOr<TransportCost> MeasureTransport();

}  // namespace thinwire
