#include "coordinator/fleet/pulse.h"

namespace thinwire {

void Pulse::Add(uint64_t advances, SteadyTime now) {
  absl::MutexLock lock(&mutex_);
  advances_ += advances;
  answered_ = now;
  if (advances > 0) advanced_ = now;
}

uint64_t Pulse::advances() const {
  absl::MutexLock lock(&mutex_);
  return advances_;
}

bool Pulse::Advances(SteadyTime now, absl::Duration time) const {
  absl::MutexLock lock(&mutex_);
  return now - advanced_ < time;
}

bool Pulse::Answers(SteadyTime now, absl::Duration time) const {
  absl::MutexLock lock(&mutex_);
  return now - answered_ < time;
}

}  // namespace thinwire
