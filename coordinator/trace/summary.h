// Where the time of traced steps went.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/trace/trace.h"
#include "nlohmann/json.hpp"

namespace thinwire {

// What a stage waited for while it waited for a message, in the order in which these follow one
// another: the neighbour to compute it, its codec worker to take it and to encode it, framing and
// checksums, the wire, our codec worker to gather, verify and decode it, and the executor to wake
// up.
inline constexpr std::array<const char*, 8> kWaitedFor = {"peer", "queue",   "encode", "send",
                                                          "wire", "receive", "decode", "wake_up"};

// Seconds of one stage, means over the steps. Encoding and decoding have threads of their own; the
// others are the executor's and add up to `step`.
struct StageTimes {
  double step = 0;
  double forward = 0, backward = 0, optimizer = 0;
  double core_wait = 0;  // of these three, for a core, which others had; in no other
  double data = 0;       // waiting for samples
  double waiting = 0;    // for messages
  double other = 0;      // what no slice shows
  double encode = 0, decode = 0;
  std::array<double, kWaitedFor.size()>
      waited_for{};  // of `waiting`, that for activations and gradients

  // 1 - (forward + backward) / step, as thinwire_pipeline_bubble_ratio.
  double bubble() const { return step > 0 ? 1 - (forward + backward) / step : 0; }
};

struct TraceSummary {
  TraceSteps steps;                // that were summed up
  std::vector<StageTimes> stages;  // by number
};

// Of one step, or of all that were asked for. NotFound if a stage's part of one is missing.
absl::StatusOr<TraceSummary> Summarize(const RunTrace& trace, std::optional<uint64_t> step);

std::string SummaryText(const RunTrace& trace, const TraceSummary& summary);
nlohmann::ordered_json SummaryJson(const RunTrace& trace, const TraceSummary& summary);

}  // namespace thinwire
