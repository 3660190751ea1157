// Times of another clock on ours.
#pragma once

#include <cstdint>

namespace thinwire {

// One moment as two clocks show it, in nanoseconds.
struct ClockPair {
  int64_t theirs = 0, ours = 0;
};

// Maps a time of a clock that is compared with ours twice, `first` and `last`. Between these both
// clocks go evenly, so what they drift apart meanwhile is spread; outside they go alike.
int64_t OnOurClock(int64_t theirs, const ClockPair& first, const ClockPair& last);

}  // namespace thinwire
