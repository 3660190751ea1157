#include "coordinator/fleet/pulse.h"

#include <algorithm>

namespace thinwire {
namespace {

constexpr double kKeptOfPause = 0.97;
constexpr int kPauses = 3;

}  // namespace

void Pulse::Add(uint64_t advances, SteadyTime now) {
  absl::MutexLock lock(&mutex_);
  advances_ += advances;
  answered_ = now;
  if (advances == 0) return;
  if (has_advanced_) longest_pause_ = std::max(kKeptOfPause * longest_pause_, now - advanced_);
  advanced_ = now;
  has_advanced_ = trains_;
}

uint64_t Pulse::advances() const {
  absl::MutexLock lock(&mutex_);
  return advances_;
}

void Pulse::set_trains(bool trains) {
  absl::MutexLock lock(&mutex_);
  trains_ = trains;
  has_advanced_ = false;
}

bool Pulse::Answers(SteadyTime now, absl::Duration time) const {
  absl::MutexLock lock(&mutex_);
  return now - answered_ < time;
}

SteadyTime Pulse::StandStill(absl::Duration time) const {
  absl::MutexLock lock(&mutex_);
  if (!has_advanced_) return SteadyTime::Never();
  return advanced_ + std::max(time, kPauses * longest_pause_);
}

bool Pulse::HasAdvancedSince(SteadyTime moment) const {
  absl::MutexLock lock(&mutex_);
  return advanced_ > moment;
}

}  // namespace thinwire
