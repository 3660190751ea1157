#include "coordinator/fleet/dealer.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace thinwire {
namespace {

// Time for which a server is measured, and least between two deals by speed.
constexpr absl::Duration kMeasured = absl::Seconds(3);
constexpr absl::Duration kBetween = absl::Seconds(20);
// Servers whose speed is remembered.
constexpr size_t kMostKnown = 256;

// Returns the time of the pipeline that is done last.
double SlowestOf(const std::vector<double>& seconds, const Deal& deal) {
  double slowest = 0;
  for (size_t i = 0; i < deal.size(); ++i) slowest = std::max(slowest, seconds[i] * deal[i]);
  return slowest;
}

}  // namespace

Deal DealBySpeed(const std::vector<double>& seconds, int replicas) {
  Deal deal(seconds.size(), 1);
  for (int left = replicas - static_cast<int>(seconds.size()); left > 0; --left) {
    // Each further one goes where it is done first.
    size_t best = 0;
    const auto with_one_more = [&](size_t i) { return seconds[i] * (deal[i] + 1); };
    for (size_t i = 1; i < deal.size(); ++i) {
      if (with_one_more(i) < with_one_more(best)) best = i;
    }
    ++deal[best];
  }
  return deal;
}

void Dealer::Begin(std::vector<std::string> addresses, Deal deal) {
  absl::MutexLock lock(&mutex_);
  addresses_ = std::move(addresses);
  deal_ = std::move(deal);
  first_.assign(addresses_.size(), std::nullopt);
  is_measured_.assign(addresses_.size(), false);
  if (seconds_.size() > kMostKnown) seconds_.clear();
}

bool Dealer::Add(int server, uint64_t step, double busy, SteadyTime now) {
  absl::MutexLock lock(&mutex_);
  const auto index = static_cast<size_t>(server);
  std::optional<Measured>& first = first_[index];
  // A stage that is configured, or trained, anew counts from 0.
  if (!first || step < first->step || busy < first->busy) {
    first = Measured{step, busy, now};
    return false;
  }
  if (now - first->since < kMeasured || step == first->step) return false;
  const size_t stages = addresses_.size() / deal_.size();
  const double parts = static_cast<double>(step - first->step) * deal_[index / stages];
  seconds_[addresses_[index]] = (busy - first->busy) / parts;
  first = Measured{step, busy, now};
  is_measured_[index] = true;
  const bool are_all =
      std::all_of(is_measured_.begin(), is_measured_.end(), [](bool is) { return is; });
  if (!are_all || now < earliest_ || !IsWorthIt()) return false;
  earliest_ = now + kBetween;
  return true;
}

bool Dealer::IsWorthIt() const {
  const std::vector<double> seconds = SecondsOf(addresses_, static_cast<int>(deal_.size()));
  const double now = SlowestOf(seconds, deal_);
  return SlowestOf(seconds, DealBySpeed(seconds, replicas_)) <= (1 - kLeastGain) * now;
}

std::vector<double> Dealer::SecondsOf(const std::vector<std::string>& addresses,
                                      int pipelines) const {
  const double sum =
      std::accumulate(seconds_.begin(), seconds_.end(), 0.0,
                      [](double so_far, const auto& one) { return so_far + one.second; });
  const double mean = sum / static_cast<double>(seconds_.size());
  std::vector<double> slowest(static_cast<size_t>(pipelines), 0);
  const size_t stages = addresses.size() / slowest.size();
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto found = seconds_.find(addresses[i]);
    double& of_pipeline = slowest[i / stages];
    of_pipeline = std::max(of_pipeline, found == seconds_.end() ? mean : found->second);
  }
  return slowest;
}

Deal Dealer::BestFor(const std::vector<std::string>& addresses, int pipelines) const {
  absl::MutexLock lock(&mutex_);
  if (seconds_.empty()) {
    Deal equal;
    for (int i = 0; i < pipelines; ++i) equal.push_back(CarriedBy(i, pipelines, replicas_).size());
    return equal;
  }
  return DealBySpeed(SecondsOf(addresses, pipelines), replicas_);
}

}  // namespace thinwire
