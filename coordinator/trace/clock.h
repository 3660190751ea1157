// One clock for the slices of all stages.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "coordinator/trace/trace.h"

namespace thinwire {

// A stage's clock read over the network, nanoseconds: ours when we asked and when the answer came,
// the stage's when it answered.
struct ClockReading {
  int64_t asked = 0, answered = 0, came = 0;
};

// Each reading says that the offset lies in [answered - came, answered - asked], whatever the two
// ways take; all of them together say the intersection, whose middle is the estimate (Marzullo &
// Owicki, PODC 1983). Where clocks have drifted apart so far that it is empty, the reading of the
// shortest round trip alone counts, as in NTP. At least one reading.
ClockOffset EstimateOffset(absl::Span<const ClockReading> readings);

// Puts the slices of all stages on the coordinator's clock, and its beginning at the first slice.
// What the offsets leave open the messages narrow: a stage's clock is moved, if it must be, by the
// least that lets every message come after it was handed to the transport, and if the clocks
// contradict one another over the trace, to the middle of what contradicts.
void Align(RunTrace* trace);

}  // namespace thinwire
