#include "stage_server/stage/memory_meter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/byte_size.h"
#include "base/resources.h"

namespace thinwire {

MemoryMeter::MemoryMeter(Device* device, std::optional<uint64_t> limit_bytes)
    : device_(device), limit_bytes_(limit_bytes), before_(BytesNow()) {}

uint64_t MemoryMeter::BytesNow() const {
  return device_->is_host() ? ResidentBytes() : device_->bytes_in_use();
}

void MemoryMeter::AllowCopy(uint64_t bytes) {
  // Copies are in the host's memory.
  if (device_->is_host()) copy_.store(std::max(copy_.load(), bytes));
}

absl::Status MemoryMeter::Measure() {
  const uint64_t now = BytesNow(), apart = before_ + copy_.load(std::memory_order_relaxed);
  const uint64_t taken = now - std::min(now, apart);
  most_.store(std::max(most_bytes(), taken), std::memory_order_relaxed);
  if (!limit_bytes_) return absl::OkStatus();
  const double most = (1 + kMemorySlack) * static_cast<double>(*limit_bytes_) +
                      (device_->is_host() ? kHostSlackBytes : 0);
  if (static_cast<double>(taken) <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("takes ", ByteSizeText(taken), " of memory on ", device_->name(),
                   ", pipeline.memory is ", ByteSizeText(*limit_bytes_), ": want a larger one, or ",
                   "one that is smaller by as much, so that a plan leaves room"));
}

}  // namespace thinwire
