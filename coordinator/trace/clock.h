// Mapping of all stages' slices to one clock.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "coordinator/trace/trace.h"

namespace thinwire {

// One reading of a stage's clock over the network, in nanoseconds. `asked` and `came` are our times
// of the question and of the answer's arrival; `answered` is the stage's time of the answer.
struct ClockReading {
  int64_t asked = 0, answered = 0, came = 0;
};

// Estimates a stage's offset from at least one reading. Whatever the two ways take, each reading
// puts it into [answered - came, answered - asked]. The estimate is the middle of the intersection
// of all of them (Marzullo & Owicki, PODC 1983). If clocks have drifted so far that it is empty,
// the reading with the shortest round trip alone counts, as in NTP.
ClockOffset EstimateOffset(absl::Span<const ClockReading> readings);

// Moves the slices of all stages to the coordinator's clock, with 0 at the first slice. Messages
// narrow what the offsets leave open. If a message would arrive before it was given to the
// transport, the stage's clock is shifted by the least amount that repairs this. If clocks
// contradict each other over the trace, the middle of the contradictory bounds is taken.
void Align(RunTrace* trace);

}  // namespace thinwire
