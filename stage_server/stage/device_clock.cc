#include "stage_server/stage/device_clock.h"

#include <utility>

#include "base/status.h"

namespace thinwire {

DeviceClock::Timer::~Timer() {
  if (on_device_ != nullptr) clock_->Note(on_device_->Stop());
  const Stopwatch::Reading reading = on_host_.Read();
  *core_wait_ += reading.core_wait_seconds;
  if (slice_.trace != nullptr) slice_.Add(reading);
  if (on_device_ == nullptr) {
    *seconds_ += reading.seconds;
  } else {
    clock_->timed_.push_back({std::move(on_device_), seconds_});
  }
}

std::unique_ptr<WorkTimer> DeviceClock::Start() {
  std::unique_ptr<WorkTimer> timer;
  if (idle_.empty()) {
    WorkTimer* made = nullptr;
    // The device has none, so the host's clock counts.
    if (!ops_->NewWorkTimer(&made).ok()) return nullptr;
    timer.reset(made);
  } else {
    timer = std::move(idle_.back());
    idle_.pop_back();
  }
  Note(timer->Start());
  return timer;
}

void DeviceClock::Note(const Error& error) {
  if (error_.ok()) error_ = error;
}

absl::Status DeviceClock::Settle() {
  for (Timed& timed : timed_) {
    double seconds = 0;
    if (error_.ok()) Note(timed.timer->Seconds(&seconds));
    *timed.seconds += seconds;
    idle_.push_back(std::move(timed.timer));
  }
  timed_.clear();
  return ToStatus(std::exchange(error_, Error{}));
}

void DeviceClock::Forget() {
  for (Timed& timed : timed_) idle_.push_back(std::move(timed.timer));
  timed_.clear();
  error_ = Error{};
}

}  // namespace thinwire
