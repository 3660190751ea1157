// Points in time of the monotonic clock, for deadlines and durations. The time of day jumps when it
// is set and when a machine wakes up. Only gRPC takes deadlines in the time of day; it converts
// them to its own monotonic clock when a call starts.
#pragma once

#include <chrono>
#include <cstdint>

#include "absl/time/time.h"

namespace thinwire {

// A point in time. Differences and sums saturate, like absl::Duration's. It means nothing on
// another machine.
class SteadyTime {
 public:
  // Makes the clock's beginning, before every result of Now.
  constexpr SteadyTime() = default;
  static SteadyTime Now() {
    return SteadyTime(absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()));
  }
  static constexpr SteadyTime Never() { return SteadyTime(absl::InfiniteDuration()); }

  // Returns the time for std::condition_variable::wait_until. Never becomes 292 years after the
  // beginning.
  std::chrono::steady_clock::time_point chrono() const {
    return std::chrono::steady_clock::time_point(absl::ToChronoNanoseconds(since_beginning_));
  }

  // Returns nanoseconds since the clock's beginning.
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

// Returns the seconds since `start`.
inline double SecondsSince(SteadyTime start) {
  return absl::ToDoubleSeconds(SteadyTime::Now() - start);
}

}  // namespace thinwire
