#include "coordinator/trace/trace.h"

#include <map>
#include <tuple>

#include "schedule/schedule.h"

namespace thinwire {

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
  ScheduleKind schedule;
  const bool slices = FromName(trace.schedule, &schedule).ok() && Slices(schedule);
  const char* const one = slices ? " unit" : " microbatch";
  const char* const several = slices ? " units" : " microbatches";
  return std::to_string(trace.microbatches) + (trace.microbatches == 1 ? one : several);
}

bool IsOfDevice(const TraceSlice& slice) { return slice.thread() == TraceSlice::DEVICE; }

std::string ActivityOf(const TraceSlice& slice) {
  return slice.name().substr(0, slice.name().find(' '));
}

}  // namespace thinwire
