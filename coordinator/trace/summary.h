// Summary of where the time of traced steps went.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/trace/trace.h"
#include "nlohmann/json.hpp"

namespace thinwire {

// Parts of a stage's wait for a message, in the order in which they happen. The neighbour computes
// it; its codec worker takes it and encodes it; framing and checksums; the wire. Then our codec
// worker gathers, verifies and decodes it, and the executor wakes up.
inline constexpr std::array<const char*, 8> kWaitedFor = {"peer", "queue",   "encode", "send",
                                                          "wire", "receive", "decode", "wake_up"};

// Seconds of one stage, as means over the steps. Encoding and decoding have their own threads, and
// the GPU works beside them; the other times are the executor's and add up to `step`.
struct StageTimes {
  double step = 0;
  double forward = 0, backward = 0, optimizer = 0;
  double sums = 0;       // part of forward and backward: partial sums of tensor-parallel parts
  double stash = 0;      // part of forward and backward: tensors that are kept, encoded and decoded
  double swap = 0;       // part of forward and backward: waiting for what leaves and comes back
  double core_wait = 0;  // part of the three above: waiting for a core that others had
  double data = 0;       // waiting for samples
  double waiting = 0;    // waiting for messages
  double other = 0;      // not covered by any slice
  double encode = 0, decode = 0;
  // The stage's GPU, of whatever stream: it runs kernels; it copies or clears memory beside none.
  double kernels = 0, copies = 0;
  bool has_device = false;  // whether the trace has slices of the GPU
  std::array<double, kWaitedFor.size()>
      waited_for{};  // parts of `waiting`, for activations and gradients

  // Returns 1 - (forward + backward) / step, like thinwire_pipeline_bubble_ratio.
  double bubble() const { return step > 0 ? 1 - (forward + backward) / step : 0; }
  // Returns the part of the step in which nothing ran on the GPU.
  double device_idle() const { return step > 0 ? std::max(0.0, 1 - (kernels + copies) / step) : 0; }
};

// Times of all stages.
struct TraceSummary {
  TraceSteps steps;                // steps that the means are over
  std::vector<StageTimes> stages;  // by number
};

// Summarises one step, or all steps that were asked for. NotFound if a stage's part of one is
// missing.
absl::StatusOr<TraceSummary> Summarize(const RunTrace& trace, std::optional<uint64_t> step);

std::string SummaryText(const RunTrace& trace, const TraceSummary& summary);
nlohmann::ordered_json SummaryJson(const RunTrace& trace, const TraceSummary& summary);

}  // namespace thinwire
