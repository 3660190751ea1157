#include "coordinator/fleet/answer_times.h"

#include <algorithm>

namespace thinwire {
namespace {

constexpr int kTimesSlowest = 8;
constexpr size_t kMostRemembered = 256;  // servers
constexpr absl::Duration kLeast = absl::Milliseconds(500);
constexpr absl::Duration kMost = absl::Seconds(10);
constexpr double kKeptOfSlowest = 0.97;

}  // namespace

void AnswerTimes::Add(const std::string& address, absl::Duration time, SteadyTime now) {
  absl::MutexLock lock(&mutex_);
  if (servers_.size() > kMostRemembered) servers_.clear();
  Known& known =
      servers_.try_emplace(address, Known{kMost / kTimesSlowest, kLeast, {}}).first->second;
  known.slowest = std::max(kKeptOfSlowest * known.slowest, time);
  if (known.lost && now - *known.lost < kMost) known.least = std::min(2 * known.least, kMost);
  known.lost.reset();
}

void AnswerTimes::Lose(const std::string& address, SteadyTime answered) {
  absl::MutexLock lock(&mutex_);
  const auto found = servers_.find(address);
  if (found != servers_.end()) found->second.lost = answered;
}

absl::Duration AnswerTimes::Patience(const std::string& address) const {
  absl::MutexLock lock(&mutex_);
  const auto found = servers_.find(address);
  if (found == servers_.end()) return kMost;
  return std::clamp(kTimesSlowest * found->second.slowest, found->second.least, kMost);
}

}  // namespace thinwire
