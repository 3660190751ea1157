// Some steps of a run, as its stages measured them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/stage.pb.h"

namespace thinwire {

// What a trace holds at most: as a file 24 MB.
inline constexpr uint64_t kMostSlices = 100'000;

// What a stage's steady clock showed beyond the coordinator's: within `offset` plus or minus
// `uncertainty`, both nanoseconds.
struct ClockOffset {
  int64_t offset = 0;
  int64_t uncertainty = 0;
};

struct StageTrace {
  ClockOffset clock;
  uint64_t dropped = 0;            // slices that found no room
  std::vector<TraceSlice> slices;  // of traced steps, in no particular order
};

struct RunTrace {
  std::string run, schedule;
  uint32_t microbatches = 0;      // of a step; units, where the schedule has slices of sequences
  std::vector<std::string> cuts;  // by index, the tied cut included
  TraceSteps steps;               // asked for
  // By number. Before Align each has slices on a clock of its own, then on one that begins with the
  // first slice.
  std::vector<StageTrace> stages;
};

// "8 microbatches", or "8 units".
std::string UnitsText(const RunTrace& trace);

// A training message, from the stage that encodes it to the one that decodes it. The slices are
// those of the trace, or null where they were dropped.
struct TracedMessage {
  uint32_t cut = 0;
  bool gradient = false;
  uint64_t step = 0;
  uint32_t microbatch = 0;
  int from = -1, to = -1;  // stages; -1: unknown
  const TraceSlice* encode = nullptr;
  const TraceSlice* send = nullptr;
  const TraceSlice* decode = nullptr;

  // It was handed to the transport and came.
  bool crossed() const { return send != nullptr && decode != nullptr && decode->has_ready(); }
};

// All of them, by step, cut, direction and microbatch.
std::vector<TracedMessage> MessagesOf(const RunTrace& trace);

// The activity that a slice counts to: the first word of its name.
std::string ActivityOf(const TraceSlice& slice);

}  // namespace thinwire
