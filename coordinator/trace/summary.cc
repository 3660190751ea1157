#include "coordinator/trace/summary.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"

namespace thinwire {
namespace {

// Returns a slice's seconds, without the wait for a core.
double Seconds(const TraceSlice& slice) {
  return 1e-9 * static_cast<double>(slice.end() - slice.begin() - slice.core_wait());
}

using MessageId = std::tuple<uint64_t, uint32_t, bool, uint32_t>;

// Divides a wait among its reasons, from the times at which the message reached each point of its
// way.
void AddWait(const TraceSlice& wait, const TracedMessage& message, StageTimes* times) {
  if (!message.crossed() || message.encode == nullptr || !message.encode->has_ready()) return;
  const int64_t arrival = message.decode->ready();
  const std::array<int64_t, kWaitedFor.size()> points = {message.encode->ready(),
                                                         message.encode->begin(),
                                                         message.send->begin(),
                                                         std::min(message.send->end(), arrival),
                                                         arrival,
                                                         message.decode->begin(),
                                                         message.decode->end(),
                                                         wait.end()};
  int64_t reached = wait.begin();
  for (size_t i = 0; i < points.size(); ++i) {
    const int64_t until = std::clamp(points[i], reached, wait.end());
    times->waited_for[i] += 1e-9 * static_cast<double>(until - reached);
    reached = until;
  }
}

using Interval = std::pair<int64_t, int64_t>;  // begin and end, in nanoseconds

// Returns the seconds that intervals cover; what is in several counts once.
double Covered(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  int64_t covered = 0, until = intervals.empty() ? 0 : intervals.front().first;
  for (const auto& [begin, end] : intervals) {
    covered += std::max<int64_t>(0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return 1e-9 * static_cast<double>(covered);
}

// Sums of one stage, over the steps from `first` to `last`.
class StageSums {
 public:
  StageSums(const std::map<MessageId, TracedMessage>& messages, const TraceSteps& steps)
      : messages_(messages), steps_(steps) {}

  // Adds the slices of one stage. Returns how many of the steps are complete.
  uint64_t Add(const StageTrace& stage, StageTimes* times) {
    uint64_t steps = 0;
    for (const TraceSlice& slice : stage.slices) {
      if (slice.step() < steps_.first() || slice.step() > steps_.last()) continue;
      if (slice.name() == "step") {
        ++steps;
        times->step += Seconds(slice);
        begin_ = std::min(begin_, slice.begin());
        end_ = std::max(end_, slice.end());
      } else if (IsOfDevice(slice)) {
        device_.push_back(&slice);
      } else {
        AddActivity(slice, times);
      }
    }
    times->other = times->step - Covered(shown_);
    AddDevice(times);
    return steps;
  }

 private:
  void AddActivity(const TraceSlice& slice, StageTimes* times) {
    if (slice.thread() == TraceSlice::EXECUTOR) shown_.emplace_back(slice.begin(), slice.end());
    const std::string activity = ActivityOf(slice);
    if (activity == "forward" || activity == "backward" || activity == "optimizer") {
      times->core_wait += 1e-9 * static_cast<double>(slice.core_wait());
    }
    if (activity == "forward") times->forward += Seconds(slice);
    if (activity == "backward") times->backward += Seconds(slice);
    if (activity == "optimizer") times->optimizer += Seconds(slice);
    if (activity == "sum") times->sums += Seconds(slice);
    if (activity == "stash") times->stash += Seconds(slice);
    if (activity == "swap") times->swap += Seconds(slice);
    if (activity == "data") times->data += Seconds(slice);
    if (activity == "encode") times->encode += Seconds(slice);
    if (activity == "decode") times->decode += Seconds(slice);
    if (activity != "receive_wait") return;
    times->waiting += Seconds(slice);
    if (!slice.has_microbatch() || !slice.has_cut()) return;
    const auto found =
        messages_.find({slice.step(), slice.cut(), slice.gradient(), slice.microbatch()});
    if (found != messages_.end()) AddWait(slice, found->second, times);
  }

  // Adds what the GPU did within the steps.
  void AddDevice(StageTimes* times) const {
    std::vector<Interval> all, kernels;
    for (const TraceSlice* slice : device_) {
      const int64_t begin = std::max(slice->begin(), begin_), end = std::min(slice->end(), end_);
      all.emplace_back(begin, end);
      if (ActivityOf(*slice) == "kernel") kernels.emplace_back(begin, end);
    }
    times->has_device = !device_.empty();
    times->kernels = Covered(kernels);
    times->copies = Covered(all) - times->kernels;
  }

  const std::map<MessageId, TracedMessage>& messages_;
  const TraceSteps steps_;
  std::vector<Interval> shown_;            // what the executor did
  std::vector<const TraceSlice*> device_;  // what the GPU did
  // From the first step's begin to the last one's end.
  int64_t begin_ = std::numeric_limits<int64_t>::max();
  int64_t end_ = std::numeric_limits<int64_t>::min();
};

void Divide(double by, StageTimes* times) {
  for (double* seconds :
       {&times->step, &times->forward, &times->backward, &times->optimizer, &times->sums,
        &times->stash, &times->swap, &times->core_wait, &times->data, &times->waiting,
        &times->other, &times->encode, &times->decode, &times->kernels, &times->copies}) {
    *seconds /= by;
  }
  for (double& seconds : times->waited_for) seconds /= by;
}

absl::StatusOr<TraceSteps> StepsOf(const RunTrace& trace, std::optional<uint64_t> step) {
  TraceSteps steps = trace.steps;
  if (!step) return steps;
  if (*step < steps.first() || *step > steps.last()) {
    return absl::NotFoundError(
        absl::StrCat("step ", *step, ": the trace has ", Spelled(trace.steps)));
  }
  steps.set_first(*step);
  steps.set_last(*step);
  return steps;
}

std::string Row(const std::string& name, const TraceSummary& summary,
                const std::function<double(const StageTimes&)>& seconds) {
  std::string row = absl::StrFormat("%-20s", name);
  for (const StageTimes& times : summary.stages) {
    absl::StrAppendFormat(&row, "%10.3f", 1e3 * seconds(times));
  }
  return row + "\n";
}

// Returns the rows of the GPUs, or "" if the trace has nothing of any.
std::string DeviceRows(const TraceSummary& summary) {
  std::string kernels = "GPU kernels         ", copies = "    copies          ",
              idle = "    idle            ";
  bool has_any = false;
  for (const StageTimes& times : summary.stages) {
    has_any = has_any || times.has_device;
    if (times.has_device) {
      absl::StrAppendFormat(&kernels, "%10.3f", 1e3 * times.kernels);
      absl::StrAppendFormat(&copies, "%10.3f", 1e3 * times.copies);
      absl::StrAppendFormat(&idle, "%8.1f %%", 100 * times.device_idle());
    } else {
      for (std::string* row : {&kernels, &copies, &idle}) absl::StrAppendFormat(row, "%10s", "-");
    }
  }
  return has_any ? absl::StrCat(kernels, "\n", copies, "\n", idle, "\n") : "";
}

bool Has(const TraceSummary& summary, double StageTimes::*seconds) {
  return std::any_of(summary.stages.begin(), summary.stages.end(),
                     [seconds](const StageTimes& times) { return times.*seconds > 0; });
}

std::string Table(const TraceSummary& summary) {
  std::string text = absl::StrFormat("%-20s", "milliseconds a step");
  for (size_t i = 0; i < summary.stages.size(); ++i) {
    absl::StrAppendFormat(&text, "%10s", absl::StrCat("stage ", i));
  }
  const auto row = [&](const std::string& name, double StageTimes::*seconds) {
    text += Row(name, summary, [seconds](const StageTimes& times) { return times.*seconds; });
  };
  text += "\n";
  row("step", &StageTimes::step);
  row("  forward", &StageTimes::forward);
  row("  backward", &StageTimes::backward);
  if (Has(summary, &StageTimes::sums)) row("    in sums", &StageTimes::sums);
  if (Has(summary, &StageTimes::stash)) row("    in the stash", &StageTimes::stash);
  if (Has(summary, &StageTimes::swap)) row("    in swap", &StageTimes::swap);
  row("  optimizer", &StageTimes::optimizer);
  row("  core_wait", &StageTimes::core_wait);
  row("  samples", &StageTimes::data);
  row("  waiting", &StageTimes::waiting);
  for (size_t i = 0; i < kWaitedFor.size(); ++i) {
    text += Row(absl::StrCat("    ", kWaitedFor[i]), summary,
                [i](const StageTimes& times) { return times.waited_for[i]; });
  }
  row("  other", &StageTimes::other);
  absl::StrAppendFormat(&text, "%-20s", "  bubble");
  for (const StageTimes& times : summary.stages) {
    absl::StrAppendFormat(&text, "%8.1f %%", 100 * times.bubble());
  }
  text += "\n";
  row("codec threads encode", &StageTimes::encode);
  row("              decode", &StageTimes::decode);
  return text + DeviceRows(summary);
}

}  // namespace

absl::StatusOr<TraceSummary> Summarize(const RunTrace& trace, std::optional<uint64_t> step) {
  TraceSummary summary;
  ASSIGN_OR_RETURN(summary.steps, StepsOf(trace, step));
  std::map<MessageId, TracedMessage> messages;
  for (const TracedMessage& message : MessagesOf(trace)) {
    messages[{message.step, message.cut, message.gradient, message.microbatch}] = message;
  }
  const uint64_t want = summary.steps.last() - summary.steps.first() + 1;
  for (size_t stage = 0; stage < trace.stages.size(); ++stage) {
    StageTimes& times = summary.stages.emplace_back();
    const uint64_t steps = StageSums(messages, summary.steps).Add(trace.stages[stage], &times);
    if (steps != want) {
      return absl::NotFoundError(absl::StrCat("stage ", stage, " has ", steps, " of ",
                                              Spelled(summary.steps), ", want ", want,
                                              ": the run ended before them"));
    }
    Divide(static_cast<double>(want), &times);
  }
  return summary;
}

std::string SummaryText(const RunTrace& trace, const TraceSummary& summary) {
  std::string text =
      absl::StrCat("run ", trace.run, ": ", Spelled(summary.steps), ", ", trace.schedule, ", ",
                   trace.stages.size(), trace.stages.size() == 1 ? " stage, " : " stages, ",
                   UnitsText(trace), "\n", Table(summary));
  for (size_t i = 0; i < trace.stages.size(); ++i) {
    const StageTrace& stage = trace.stages[i];
    if (stage.clock.uncertainty > 0) {
      absl::StrAppendFormat(&text, "stage %d: its clock is known to %.3f ms\n", i,
                            1e-6 * static_cast<double>(stage.clock.uncertainty));
    }
    if (stage.dropped > 0) {
      absl::StrAppendFormat(&text, "stage %d: %d slices found no room and are missing\n", i,
                            stage.dropped);
    }
  }
  return text;
}

nlohmann::ordered_json SummaryJson(const RunTrace& trace, const TraceSummary& summary) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (size_t i = 0; i < summary.stages.size(); ++i) {
    const StageTimes& times = summary.stages[i];
    nlohmann::ordered_json waited;
    for (size_t k = 0; k < kWaitedFor.size(); ++k) waited[kWaitedFor[k]] = times.waited_for[k];
    stages.push_back({{"stage", i},
                      {"step_seconds", times.step},
                      {"forward_seconds", times.forward},
                      {"backward_seconds", times.backward},
                      {"optimizer_seconds", times.optimizer},
                      {"sums_seconds", times.sums},
                      {"stash_seconds", times.stash},
                      {"swap_seconds", times.swap},
                      {"core_wait_seconds", times.core_wait},
                      {"data_seconds", times.data},
                      {"waiting_seconds", times.waiting},
                      {"other_seconds", times.other},
                      {"encode_seconds", times.encode},
                      {"decode_seconds", times.decode},
                      {"bubble_ratio", times.bubble()},
                      {"waited_for_seconds", waited},
                      {"clock_uncertainty_seconds", 1e-9 * trace.stages[i].clock.uncertainty},
                      {"dropped_slices", trace.stages[i].dropped}});
    if (times.has_device) {
      stages.back()["gpu"] = {{"kernel_seconds", times.kernels},
                              {"copy_seconds", times.copies},
                              {"idle_ratio", times.device_idle()}};
    }
  }
  return {{"run", trace.run},
          {"schedule", trace.schedule},
          {"microbatches", trace.microbatches},
          {"first_step", summary.steps.first()},
          {"last_step", summary.steps.last()},
          {"stages", stages}};
}

}  // namespace thinwire
