// Records what the threads of a stage did in some steps of training, as slices that are taken
// later. A stage that is not traced has no StepTrace and pays for testing a null pointer only.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/steady_time.h"
#include "base/stopwatch.h"
#include "proto/boundary.pb.h"

namespace thinwire {

// One activity of a thread, from `begin` to `end`.
struct Slice {
  // Thread of the slice; slices of one thread nest or follow one another. Each cut and direction
  // has its own encoder and decoder.
  enum class Thread : uint8_t { kExecutor, kEncoder, kDecoder };
  static constexpr int kNone = -1;

  const char* name = "";  // has static lifetime; docs/schedules.md lists the names
  Thread thread = Thread::kExecutor;
  uint64_t step = 0;
  int microbatch = kNone;  // kNone: the whole step
  int cut = kNone;         // index in model order; kNone: no message
  int segment = kNone;     // index in model order of the segment whose pass it is; kNone: no pass
  Direction direction = DIRECTION_UNSPECIFIED;
  // encode, decode: when the thread could have begun. Otherwise the clock's epoch.
  SteadyTime ready = {};
  SteadyTime begin = {}, end = {};
  // Part of the slice's seconds that the thread waited for a core; of layers and codecs only.
  double core_wait_seconds = 0;
  uint64_t wire_bytes = 0;  // send: size of the message
};

class StepTrace {
 public:
  // Records the steps from `first_step` to `last_step`, both included. Holds at most `capacity`
  // slices at a time, whose memory is allocated here.
  StepTrace(uint64_t first_step, uint64_t last_step, size_t capacity);

  // Returns whether `step` is recorded.
  bool Wants(uint64_t step) const { return first_step_ <= step && step <= last_step_; }

  // Adds a slice; one that finds no room is dropped and counted. Thread-safe.
  void Add(const Slice& slice);

  // Returns whether it is time to take the slices. Thread-safe.
  bool is_half_full() const;

  // Removes and returns what was added since the last Take, in no particular order. Thread-safe.
  struct Taken {
    std::vector<Slice> slices;
    uint64_t dropped = 0;
  };
  Taken Take();

 private:
  const uint64_t first_step_, last_step_;
  const size_t capacity_;
  mutable std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  std::vector<Slice> slices_ ABSL_GUARDED_BY(mutex_);
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A slice that has not begun yet. Without a trace it is recorded nowhere; Add then must not be
// called.
struct PlannedSlice {
  StepTrace* trace = nullptr;
  Slice slice = {};

  PlannedSlice At(uint32_t cut, Direction direction) const {
    PlannedSlice at = *this;
    at.slice.cut = static_cast<int>(cut);
    at.slice.direction = direction;
    return at;
  }
  void Add(SteadyTime begin, SteadyTime end) {
    slice.begin = begin;
    slice.end = end;
    trace->Add(slice);
  }
  void Add(const Stopwatch::Reading& took) {
    slice.core_wait_seconds = took.core_wait_seconds;
    Add(took.begin, took.end);
  }
};

}  // namespace thinwire
