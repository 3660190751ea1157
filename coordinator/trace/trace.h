// Trace of some steps of a run, as its stages measured them; which steps these are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Most slices of a trace's threads, which make a file of 24 MB, and of one stage's GPU.
inline constexpr uint64_t kMostSlices = 100'000;
inline constexpr uint64_t kMostDeviceSlices = 20'000;

// Offset of a stage's steady clock from the coordinator's, plus or minus `uncertainty`; both in
// nanoseconds.
struct ClockOffset {
  int64_t offset = 0;
  int64_t uncertainty = 0;
};

// Slices of one stage.
struct StageTrace {
  ClockOffset clock;
  uint64_t dropped = 0;            // number of slices that found no room
  std::vector<TraceSlice> slices;  // of traced steps, in any order
};

// Trace of a run.
struct RunTrace {
  std::string run, schedule;
  uint32_t microbatches = 0;      // of a step; units, if the schedule has slices of sequences
  std::vector<std::string> cuts;  // names by index, the tied cut included
  uint32_t sums = 0;              // of a microbatch and pass, at all tensor-parallel parts
  // Blocks with something of a microbatch in a stash, and blocks with something elsewhere.
  uint32_t stashed = 0;
  TraceSteps steps;       // the steps asked for
  uint32_t carriers = 1;  // pipelines that carry the replicas
  // Stages by number, of one carrier after the other. Before Align the slices of each are on its
  // own clock; afterwards all are on one that begins with the first slice.
  std::vector<StageTrace> stages;
};

// Returns "8 microbatches" or "8 units".
std::string UnitsText(const RunTrace& trace);

// A training message between the stages that encode and decode it. The slices belong to the trace;
// they are null if they were dropped.
struct TracedMessage {
  uint32_t cut = 0;
  bool gradient = false;
  uint64_t step = 0;
  uint32_t microbatch = 0;
  int from = -1, to = -1;  // stages; -1: unknown
  const TraceSlice* encode = nullptr;
  const TraceSlice* send = nullptr;
  const TraceSlice* decode = nullptr;

  // Returns whether it was given to the transport and arrived.
  bool crossed() const { return send != nullptr && decode != nullptr && decode->has_ready(); }
};

// Returns all messages, by step, cut, direction and microbatch.
std::vector<TracedMessage> MessagesOf(const RunTrace& trace);

// Returns whether a GPU did it, beside the threads.
bool IsOfDevice(const TraceSlice& slice);

// Returns the activity of a slice: the first word of its name.
std::string ActivityOf(const TraceSlice& slice);

// Parses "steps=10..12" or "steps=5". InvalidArgument says what was met and what is wanted.
absl::StatusOr<TraceSteps> ParseTraceSteps(const std::string& text);

// Returns InvalidArgument if the steps asked for would have more slices than a trace holds. `asked`
// is the trace of the run before anything is traced.
absl::Status CheckTraceSize(const RunTrace& asked);

// Returns InvalidArgument if the run, which has `last` steps and continues after step `done`, will
// not reach the steps asked for.
absl::Status CheckTraceComes(const TraceSteps& steps, uint64_t done, uint64_t last);

// Returns "step 5" or "steps 10 to 12".
std::string Spelled(const TraceSteps& steps);

}  // namespace thinwire
