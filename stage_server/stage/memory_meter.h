// What a stage takes of its device's memory, as a plan counts it, and a limit on that.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "tensor/device.h"

namespace thinwire {

// By how much a stage may exceed its limit: as far as plans are right, and on a CPU what a program
// takes whatever its model, for generated code and for threads.
inline constexpr double kMemorySlack = 0.1;
inline constexpr double kHostSlackBytes = 64 << 20;

class MemoryMeter {
 public:
  // Counts from now on: on a CPU, what the process has resident that is no file's, elsewhere what
  // is allocated on the device, which outlives the meter.
  MemoryMeter(Device* device, std::optional<uint64_t> limit_bytes);

  // Notes that a copy of the stage's state, for a checkpoint, may take so much besides. Any thread.
  void AllowCopy(uint64_t bytes);
  // Measures. ResourceExhausted, with both numbers, if it exceeds the limit by more than it may.
  // Called on the actions' thread.
  absl::Status Measure();
  bool is_limited() const { return limit_bytes_.has_value(); }
  // Returns the most that was measured. Any thread.
  uint64_t most_bytes() const { return most_.load(std::memory_order_relaxed); }

 private:
  uint64_t BytesNow() const;

  Device* const device_;
  const std::optional<uint64_t> limit_bytes_;
  const uint64_t before_;
  std::atomic<uint64_t> most_{0}, copy_{0};
};

}  // namespace thinwire
