#include "stage_server/stage/step_gate.h"

namespace thinwire {

bool StepGate::Enter(uint64_t step) {
  std::unique_lock<std::mutex> lock(mutex_);
  // While it is held, the coordinator asks the other stages how far they are. Then it says where
  // all end, or the run ends otherwise.
  changed_.wait(lock, [this] { return !held_ || open_ || last_step_; });
  if (!open_ && last_step_ && step > *last_step_) return false;
  begun_ = step;
  return true;
}

uint64_t StepGate::Hold() {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_ = true;
  return begun_;
}

bool StepGate::EndAfter(uint64_t last_step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (begun_ > last_step) return false;
  last_step_ = last_step;
  changed_.notify_all();
  return true;
}

void StepGate::Open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

}  // namespace thinwire
