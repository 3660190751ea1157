// What the threads of a stage did in some steps of training, slice by slice, until somebody takes
// it. A stage that is not traced has none, and looks at nothing but a null pointer.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/steady_time.h"
#include "base/stopwatch.h"
#include "proto/boundary.pb.h"

namespace thinwire {

// What one thread did from `begin` to `end`.
struct Slice {
  // Slices of one thread nest or follow one another. A codec worker is its cut's and direction's.
  enum class Thread : uint8_t { kExecutor, kEncoder, kDecoder };
  static constexpr int kNone = -1;

  const char* name = "";  // lives for ever; docs/schedules.md lists them
  Thread thread = Thread::kExecutor;
  uint64_t step = 0;
  int microbatch = kNone;  // kNone: of the whole step
  int cut = kNone;         // index in model order; kNone: of no message
  int segment = kNone;     // whose pass it is, index in model order; kNone: of none
  Direction direction = DIRECTION_UNSPECIFIED;
  // encode, decode: since when the thread could have begun. Otherwise the clock's beginning.
  SteadyTime ready = {};
  SteadyTime begin = {}, end = {};
  double core_wait_seconds =
      0;                    // of these, those that the thread waited for a core: layers, codecs
  uint64_t wire_bytes = 0;  // send: of the message
};

class StepTrace {
 public:
  // Of the steps of the run from `first_step` with `last_step`; of no more than `capacity` slices
  // at a time, whose memory is set aside here.
  StepTrace(uint64_t first_step, uint64_t last_step, size_t capacity);

  bool Wants(uint64_t step) const { return first_step_ <= step && step <= last_step_; }

  // A slice that finds no room is dropped and counted. Any thread.
  void Add(const Slice& slice);

  // Whoever takes should do so soon. Any thread.
  bool is_half_full() const;

  // What was added since the last Take, in no particular order. Any thread.
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

// A slice that has yet to begin; one without a trace goes nowhere.
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

// Its own lifetime, as a slice of the trace.
class ScopedSlice {
 public:
  explicit ScopedSlice(const PlannedSlice& planned) : planned_(planned) {
    if (planned_.trace != nullptr) begin_ = SteadyTime::Now();
  }
  ~ScopedSlice() {
    if (planned_.trace != nullptr) planned_.Add(begin_, SteadyTime::Now());
  }
  ScopedSlice(const ScopedSlice&) = delete;
  ScopedSlice& operator=(const ScopedSlice&) = delete;

  // Instead of the planned one.
  void set_name(const char* name) { planned_.slice.name = name; }
  void set_wire_bytes(uint64_t bytes) { planned_.slice.wire_bytes = bytes; }

 private:
  PlannedSlice planned_;
  SteadyTime begin_;
};

}  // namespace thinwire
