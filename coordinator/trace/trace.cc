#include "coordinator/trace/trace.h"

#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "schedule/schedule.h"

namespace thinwire {
namespace {

// Returns the most slices that a step has, if all stages wait for all messages and each stage has
// one segment.
uint64_t SlicesOfStep(const RunTrace& run) {
  constexpr uint64_t kOfMessage = 4;                   // encode, send, decode, wait
  constexpr uint64_t kOfMicrobatch = 3, kOfStage = 4;  // samples and loss; step and optimizer
  constexpr uint64_t kOfSum = 3;      // forward, again where it is recomputed, and backward
  constexpr uint64_t kOfStashed = 2;  // encode and decode, or out and in
  const uint64_t messages = 2 * run.cuts.size(), computes = 2 * (run.cuts.size() + 1);
  return run.microbatches * (messages * kOfMessage + computes + kOfMicrobatch + run.sums * kOfSum +
                             run.stashed * kOfStashed) +
         run.stages.size() * kOfStage;
}

}  // namespace

std::vector<TracedMessage> MessagesOf(const RunTrace& trace) {
  std::map<std::tuple<uint64_t, uint32_t, bool, uint32_t>, TracedMessage> found;
  for (size_t stage = 0; stage < trace.stages.size(); ++stage) {
    for (const TraceSlice& slice : trace.stages[stage].slices) {
      if (!slice.has_cut() || !slice.has_microbatch()) continue;
      const bool encodes = slice.name() == "encode", sends = ActivityOf(slice) == "send",
                 decodes = slice.name() == "decode";
      if (!encodes && !sends && !decodes) continue;
      TracedMessage& message =
          found[{slice.step(), slice.cut(), slice.gradient(), slice.microbatch()}];
      message.step = slice.step();
      message.cut = slice.cut();
      message.gradient = slice.gradient();
      message.microbatch = slice.microbatch();
      (decodes ? message.to : message.from) = static_cast<int>(stage);
      (encodes ? message.encode : sends ? message.send : message.decode) = &slice;
    }
  }
  std::vector<TracedMessage> messages;
  messages.reserve(found.size());
  for (auto& [key, message] : found) messages.push_back(message);
  return messages;
}

std::string UnitsText(const RunTrace& trace) {
  ScheduleKind schedule{};
  const bool slices = FromName(trace.schedule, &schedule).ok() && Slices(schedule);
  const char* const one = slices ? " unit" : " microbatch";
  const char* const several = slices ? " units" : " microbatches";
  return std::to_string(trace.microbatches) + (trace.microbatches == 1 ? one : several);
}

bool IsOfDevice(const TraceSlice& slice) { return slice.thread() == TraceSlice::DEVICE; }

std::string ActivityOf(const TraceSlice& slice) {
  return slice.name().substr(0, slice.name().find(' '));
}

absl::StatusOr<TraceSteps> ParseTraceSteps(const std::string& text) {
  constexpr char kPrefix[] = "steps=";
  TraceSteps steps;
  const auto error = [&text](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("--trace: ", text, ": ", what));
  };
  if (!absl::StartsWith(text, kPrefix)) return error("want steps=N or steps=N..M");
  const std::pair<std::string, std::string> ends =
      absl::StrSplit(text.substr(sizeof(kPrefix) - 1), absl::MaxSplits("..", 1));
  const bool is_range = absl::StrContains(text, "..");
  uint64_t first = 0, last = 0;
  if (!absl::SimpleAtoi(ends.first, &first) ||
      !absl::SimpleAtoi(is_range ? ends.second : ends.first, &last)) {
    return error("want steps=N or steps=N..M with whole numbers");
  }
  if (first < 1) return error("want steps from 1");
  if (last < first) return error(absl::StrCat("want a last step of at least ", first));
  steps.set_first(first);
  steps.set_last(last);
  return steps;
}

absl::Status CheckTraceSize(const RunTrace& asked) {
  const uint64_t of_step = SlicesOfStep(asked), most = kMostSlices / of_step;
  const uint64_t before = asked.steps.last() - asked.steps.first();
  if (before < most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--trace: ", Spelled(asked.steps), " have up to ", of_step, " slices each, want at most ",
      most, most == 1 ? " step" : " steps", ": a trace holds ", kMostSlices, " slices"));
}

absl::Status CheckTraceComes(const TraceSteps& steps, uint64_t done, uint64_t last) {
  if (steps.last() > last) {
    return absl::InvalidArgumentError(
        absl::StrCat("trace: step ", steps.last(), " never comes, the run has ", last, " steps"));
  }
  if (steps.first() > done) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "trace: step ", steps.first(), " never comes, the run goes on after step ", done));
}

std::string Spelled(const TraceSteps& steps) {
  if (steps.first() == steps.last()) return absl::StrCat("step ", steps.first());
  return absl::StrCat("steps ", steps.first(), " to ", steps.last());
}

}  // namespace thinwire
