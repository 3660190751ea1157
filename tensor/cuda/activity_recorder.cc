#include "tensor/cuda/activity_recorder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensor/cuda/cupti.h"

namespace thinwire {
namespace {

constexpr int kReadings = 16;

// Returns nanoseconds as SteadyTime has them.
int64_t SteadyNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Reads both clocks several times and takes the reading that was the least interrupted.
Error ReadClocks(const Cupti& cupti, ClockPair* pair) {
  int64_t shortest = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kReadings; ++i) {
    int64_t theirs = 0;
    const int64_t before = SteadyNow();
    RETURN_ERROR(cupti.Now(&theirs));
    const int64_t took = SteadyNow() - before;
    if (took >= shortest) continue;
    shortest = took;
    *pair = {theirs, before + took / 2};
  }
  return Error{};
}

class CuptiRecorder final : public ActivityRecorder {
 public:
  CuptiRecorder(Cupti* cupti, size_t most, std::function<Error()> finish)
      : cupti_(*cupti), most_(most), finish_(std::move(finish)) {}
  ~CuptiRecorder() override {
    uint64_t dropped = 0;
    if (records_) (void)cupti_.Stop(&dropped);
  }

  Error Start() override {
    if (records_) return MakeError(absl::StatusCode::kFailedPrecondition, "it records already");
    kept_.clear();
    dropped_ = 0;
    RETURN_ERROR(ReadClocks(cupti_, &first_));
    RETURN_ERROR(cupti_.Start([this](const DeviceActivity& activity) { Keep(activity); }));
    records_ = true;
    return Error{};
  }

  Error Stop(size_t* kept, uint64_t* dropped) override {
    *kept = *dropped = 0;
    if (!records_) return MakeError(absl::StatusCode::kFailedPrecondition, "nothing is recorded");
    records_ = false;
    uint64_t by_cupti = 0;
    ClockPair last;
    // Else what has not ended would be missing.
    Error error = finish_();
    const Error stopped = cupti_.Stop(&by_cupti);
    if (error.ok()) error = stopped;
    if (error.ok()) error = ReadClocks(cupti_, &last);
    if (!error.ok()) {
      kept_.clear();
      return error;
    }
    for (DeviceActivity& activity : kept_) {
      activity.begin = OnOurClock(activity.begin, first_, last);
      activity.end = OnOurClock(activity.end, first_, last);
    }
    std::stable_sort(
        kept_.begin(), kept_.end(),
        [](const DeviceActivity& a, const DeviceActivity& b) { return a.begin < b.begin; });
    *kept = kept_.size();
    *dropped = dropped_ + by_cupti;
    return Error{};
  }

  void Copy(DeviceActivity* activities) const override {
    std::copy(kept_.begin(), kept_.end(), activities);
  }

 private:
  // One at a time (Cupti), and never outside Start to Stop.
  void Keep(const DeviceActivity& activity) {
    const bool was_measured = activity.begin > 0 && activity.end >= activity.begin;
    if (was_measured && kept_.size() < most_) {
      kept_.push_back(activity);
    } else {
      ++dropped_;
    }
  }

  Cupti& cupti_;
  const size_t most_;
  const std::function<Error()> finish_;
  bool records_ = false;
  ClockPair first_;
  std::vector<DeviceActivity> kept_;
  uint64_t dropped_ = 0;
};

// CUPTI prepares itself for the first recording. That would take time of the first step to trace,
// and CUDA graphs that were made before may stay hidden. So one begins here and is dropped, which
// waits for no GPU.
Error Prepare(Cupti* cupti) {
  CuptiRecorder dropped(cupti, 0, nullptr);
  const Error error = dropped.Start();
  const bool is_prepared = error.code == static_cast<int>(absl::StatusCode::kFailedPrecondition);
  return is_prepared ? Error{} : error;
}

}  // namespace

int64_t OnOurClock(int64_t theirs, const ClockPair& first, const ClockPair& last) {
  if (theirs <= first.theirs || last.theirs <= first.theirs) {
    return first.ours + (theirs - first.theirs);
  }
  if (theirs >= last.theirs) return last.ours + (theirs - last.theirs);
  const auto share =
      static_cast<double>(theirs - first.theirs) / static_cast<double>(last.theirs - first.theirs);
  return first.ours + std::llround(share * static_cast<double>(last.ours - first.ours));
}

Error NewCuptiRecorder(size_t most, std::function<Error()> finish, ActivityRecorder** recorder) {
  std::string why;
  Cupti* const cupti = Cupti::Open(&why);
  if (cupti == nullptr) return MakeError(absl::StatusCode::kUnavailable, "%s", why.c_str());
  RETURN_ERROR(Prepare(cupti));
  *recorder = new CuptiRecorder(cupti, most, std::move(finish));
  return Error{};
}

}  // namespace thinwire
