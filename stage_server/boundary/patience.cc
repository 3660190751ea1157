#include "stage_server/boundary/patience.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/median.h"

namespace thinwire {
void Patience::RunAdvanced(uint64_t advances, SteadyTime now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (advances == run_advances_) return;
  run_advances_ = advances;
  last_advance_ = now;
}

void Patience::StepTook(absl::Duration step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  steps_.push_back(step);
  if (steps_.size() > kWindow) steps_.pop_front();
  if (steps_.size() < kFewSteps) return;
  std::vector<absl::Duration> of(steps_.begin(), steps_.end());
  // Medians: a mean and its deviation would follow a single slow step.
  const absl::Duration median = UpperMedian(of);
  for (absl::Duration& one : of) one = absl::AbsDuration(one - median);
  limit_ = std::max(least_, median + kDeviations * UpperMedian(std::move(of)));
}

absl::Duration Patience::limit() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return limit_;
}

bool Patience::Extend(SteadyTime now, SteadyTime* deadline) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!last_advance_) return false;
  const SteadyTime until = *last_advance_ + limit_;
  if (now >= until) return false;
  *deadline = until;
  return true;
}

}  // namespace thinwire
