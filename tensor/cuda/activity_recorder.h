// A recorder of activities (tensor/activity.h) that has them from CUPTI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "tensor/activity.h"

namespace thinwire {

// One moment as two clocks show it, in nanoseconds.
struct ClockPair {
  int64_t theirs = 0, ours = 0;
};

// Maps a time of a clock that is compared with ours twice, `first` and `last`. Between these both
// clocks go evenly, so what they drift apart meanwhile is spread; outside they go alike.
int64_t OnOurClock(int64_t theirs, const ClockPair& first, const ClockPair& last);

// Makes a recorder of all GPUs of the process, which keeps up to `most` activities and is the
// caller's. `finish` waits until the GPUs have done all that was submitted; a recording ends with
// it. Unavailable, with what was looked for, if there is no CUPTI, or with its reason if it cannot
// record.
Error NewCuptiRecorder(size_t most, std::function<Error()> finish, ActivityRecorder** recorder);

}  // namespace thinwire
