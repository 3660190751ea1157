#include "coordinator/fleet/answer_times.h"

#include <algorithm>

namespace thinwire {
namespace {

constexpr int kTimesSlowest = 8;
constexpr absl::Duration kLeast = absl::Seconds(1);
constexpr absl::Duration kMost = absl::Seconds(10);
constexpr double kKeptOfSlowest = 0.97;

}  // namespace

void AnswerTimes::Add(const std::string& address, absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  absl::Duration& slowest = slowest_.try_emplace(address, kMost / kTimesSlowest).first->second;
  slowest = std::max(kKeptOfSlowest * slowest, time);
}

absl::Duration AnswerTimes::Patience(const std::string& address) const {
  absl::MutexLock lock(&mutex_);
  const auto found = slowest_.find(address);
  if (found == slowest_.end()) return kMost;
  return std::clamp(kTimesSlowest * found->second, kLeast, kMost);
}

}  // namespace thinwire
