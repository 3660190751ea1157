#include "stage_server/boundary/step_trace.h"

namespace thinwire {

StepTrace::StepTrace(uint64_t first_step, uint64_t last_step, size_t capacity)
    : first_step_(first_step), last_step_(last_step), capacity_(capacity) {
  slices_.reserve(capacity);
}

void StepTrace::Add(const Slice& slice) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (slices_.size() < capacity_) {
    slices_.push_back(slice);
  } else {
    ++dropped_;
  }
}

bool StepTrace::is_half_full() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return slices_.size() >= capacity_ / 2;
}

StepTrace::Taken StepTrace::Take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Taken taken{slices_, dropped_};
  slices_.clear();  // which keeps its memory
  dropped_ = 0;
  return taken;
}

}  // namespace thinwire
