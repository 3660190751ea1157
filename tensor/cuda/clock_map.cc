#include "tensor/cuda/clock_map.h"

#include <cmath>

namespace thinwire {

int64_t OnOurClock(int64_t theirs, const ClockPair& first, const ClockPair& last) {
  if (theirs <= first.theirs || last.theirs <= first.theirs) {
    return first.ours + (theirs - first.theirs);
  }
  if (theirs >= last.theirs) return last.ours + (theirs - last.theirs);
  const auto share =
      static_cast<double>(theirs - first.theirs) / static_cast<double>(last.theirs - first.theirs);
  return first.ours + std::llround(share * static_cast<double>(last.ours - first.ours));
}

}  // namespace thinwire
