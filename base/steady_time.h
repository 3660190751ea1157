// Moments of the clock that nobody sets: for deadlines, and for what something took. The time of
// day jumps, when it is set and when a machine wakes up. gRPC alone takes deadlines in the time of
// day, and holds them against a clock of its own from the call on.
#pragma once

#include <chrono>
#include <cstdint>

#include "absl/time/time.h"

namespace thinwire {

// Differences and sums saturate, as absl::Duration's do. A moment says nothing to another machine.
class SteadyTime {
 public:
  // The clock's beginning, before every moment that Now has returned.
  constexpr SteadyTime() = default;
  static SteadyTime Now() {
    return SteadyTime(absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()));
  }
  static constexpr SteadyTime Never() { return SteadyTime(absl::InfiniteDuration()); }

  // For std::condition_variable::wait_until. Never is 292 years after the beginning.
  std::chrono::steady_clock::time_point chrono() const {
    return std::chrono::steady_clock::time_point(absl::ToChronoNanoseconds(since_beginning_));
  }

  // Since the clock's beginning.
  int64_t nanoseconds() const { return absl::ToInt64Nanoseconds(since_beginning_); }

  friend SteadyTime operator+(SteadyTime a, absl::Duration b) {
    return SteadyTime(a.since_beginning_ + b);
  }
  friend absl::Duration operator-(SteadyTime a, SteadyTime b) {
    return a.since_beginning_ - b.since_beginning_;
  }
  friend bool operator<(SteadyTime a, SteadyTime b) {
    return a.since_beginning_ < b.since_beginning_;
  }
  friend bool operator>(SteadyTime a, SteadyTime b) { return b < a; }
  friend bool operator>=(SteadyTime a, SteadyTime b) { return !(a < b); }

 private:
  explicit constexpr SteadyTime(absl::Duration since_beginning)
      : since_beginning_(since_beginning) {}

  absl::Duration since_beginning_;
};

// Seconds since `start`.
inline double SecondsSince(SteadyTime start) {
  return absl::ToDoubleSeconds(SteadyTime::Now() - start);
}

}  // namespace thinwire
