#include "stage_server/device_trace.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"

namespace thinwire {
namespace {

constexpr int kMostOfReport = 8192;  // slices, 1 MB

// Returns the name of a slice, whose first word is its activity.
std::string NameOf(const DeviceActivity& activity) {
  switch (activity.kind) {
    case DeviceActivity::Kind::kKernel:
      return absl::StrCat("kernel ", activity.name);
    case DeviceActivity::Kind::kCopyFromHost:
      return "copy to_device";
    case DeviceActivity::Kind::kCopyToHost:
      return "copy to_host";
    case DeviceActivity::Kind::kCopy:
      return "copy within_device";
    case DeviceActivity::Kind::kClear:
      return "clear";
  }
  return "unknown";
}

bool HasKernel(const std::vector<DeviceActivity>& activities) {
  return std::any_of(activities.begin(), activities.end(), [](const DeviceActivity& activity) {
    return activity.kind == DeviceActivity::Kind::kKernel;
  });
}

TraceSlice SliceOf(const DeviceActivity& activity, uint64_t step) {
  TraceSlice slice;
  slice.set_name(NameOf(activity));
  slice.set_thread(TraceSlice::DEVICE);
  slice.set_stream(activity.stream);
  slice.set_step(step);
  slice.set_begin(activity.begin);
  slice.set_end(activity.end);
  if (activity.kind != DeviceActivity::Kind::kKernel) slice.set_bytes(activity.amount);
  return slice;
}

}  // namespace

bool DeviceTrace::Begin(uint64_t step) {
  has_whole_step_ = is_recording();
  if (step < steps_.first() || step > steps_.last()) return !is_recording();
  if (cannot_start_) return true;
  if (!is_recording()) {
    const Error error = recorder_->Start();
    if (!error.ok()) {
      // An earlier run's recording may be about to end.
      cannot_start_ = error.code != static_cast<int>(absl::StatusCode::kFailedPrecondition);
      on_note_(absl::StrCat("the trace goes without the GPU's work: ", error.message));
      return true;
    }
  }
  begun_.push_back({step, SteadyTime::Now().nanoseconds()});
  return true;
}

std::vector<TraceReport> DeviceTrace::End() {
  if (begun_.empty()) return {};
  size_t kept = 0;
  uint64_t dropped = 0;
  const Error error = recorder_->Stop(&kept, &dropped);
  if (!error.ok()) on_note_(absl::StrCat("the trace lacks the GPU's work: ", error.message));
  std::vector<DeviceActivity> activities(kept);
  recorder_->Copy(activities.data());
  if (error.ok() && dropped == 0 && has_whole_step_ && !HasKernel(activities)) {
    on_note_(absl::StrCat("the trace lacks the GPU's work: no kernel was recorded in steps ",
                          begun_.front().step, " to ", begun_.back().step,
                          "; another profiler may have taken it"));
  }
  std::vector<TraceReport> reports = ReportsOf(std::move(activities));
  if (dropped > 0) reports.emplace_back().set_dropped(dropped);
  begun_.clear();
  return reports;
}

std::vector<TraceReport> DeviceTrace::ReportsOf(std::vector<DeviceActivity> activities) const {
  std::vector<TraceReport> reports;
  std::map<uint32_t, int64_t> ended;  // latest end by stream
  for (DeviceActivity& activity : activities) {
    int64_t& until = ended.try_emplace(activity.stream, activity.begin).first->second;
    // A kernel may begin while the one before it ends, but slices of a track must not overlap.
    activity.begin = std::max(activity.begin, until);
    activity.end = std::max(activity.begin, activity.end);
    until = activity.end;
    if (reports.empty() || reports.back().slices_size() == kMostOfReport) reports.emplace_back();
    *reports.back().add_slices() = SliceOf(activity, StepAt(activity.begin));
  }
  return reports;
}

// Returns the step of a time. What was submitted before the first step to trace and ran in it
// counts to it.
uint64_t DeviceTrace::StepAt(int64_t time) const {
  const auto behind =
      std::upper_bound(begun_.begin(), begun_.end(), time,
                       [](int64_t at, const Begun& begun) { return at < begun.at; });
  return behind == begun_.begin() ? begun_.front().step : std::prev(behind)->step;
}

}  // namespace thinwire
