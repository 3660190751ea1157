#include "stage_server/boundary/step_counts.h"

namespace thinwire {

StepStatistics& StepCounts::At(uint64_t step) {
  if (steps_.empty() || steps_.back().step != step) steps_.push_back({step, {}, {}, {}});
  return steps_.back();
}

std::vector<StepStatistics> StepCounts::Take(uint64_t last) {
  std::vector<StepStatistics> taken;
  for (; !steps_.empty() && steps_.front().step <= last; steps_.pop_front()) {
    taken.push_back(steps_.front());
  }
  return taken;
}

}  // namespace thinwire
