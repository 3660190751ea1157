// Counters that a stage fills while it works. They are plain sums; metrics.h shows them to
// Prometheus, service.h sends them to the coordinator.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/steady_time.h"
#include "base/stopwatch.h"
#include "compress/checks/distortion.h"
#include "monitoring/buckets.h"
#include "stage_server/boundary/step_trace.h"

namespace thinwire {

// Counts of durations in fixed buckets, as Prometheus wants them.
class Histogram {
 public:
  static constexpr auto kBounds = DecimalBounds<-5, 6>();  // 10 us to 10 s, in seconds
  void Observe(double seconds);
  Histogram& operator+=(const Histogram& other);
  // Returns per bucket the number of observations above kBounds[i-1] and not above kBounds[i]. The
  // last bucket counts those above all bounds.
  const std::array<uint64_t, kBounds.size() + 1>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::array<uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

// Loss of one message in the codec, and the residual of feedback at that time.
struct CodecError {
  double relative_error = 0;     // ||m - D(C(m))|| / ||m||, m: the codec's input
  double relative_residual = 0;  // ||e|| / ||x||, e: residual; ef21: ||x - A|| / ||x||
};

// Loss of one message.
struct MeasuredError {
  Distortion received;              // what the receiver uses, against the tensor
  std::optional<CodecError> codec;  // absent if the message went exact, without a codec
};

// Sums of losses over many messages.
struct MeasuredErrors {
  uint64_t messages = 0;
  double relative_error = 0, cosine = 0, nonzero_fraction = 0;  // of what the receiver uses
  // Sums over the messages that a codec coded, and the loss of the last of them.
  uint64_t coded_messages = 0;
  CodecError codec, last_codec;

  // Adds one message. One whose relative error is not finite (an all-zero tensor) is left out, as
  // it would spoil every mean.
  void Add(const MeasuredError& error);
  MeasuredErrors& operator+=(const MeasuredErrors& other);
};

// Counters of one end of one direction of a cut. A receiver fills the `decode` fields and
// `last_receive_unix_seconds`, a sender all others.
struct BoundaryStatistics {
  struct Traffic {
    uint64_t messages = 0;
    uint64_t elements = 0;
    uint64_t raw_bytes = 0;  // elements x size of the compute type
    uint64_t payload_bytes = 0;
    uint64_t wire_bytes = 0;  // serialised frames + 5 bytes of gRPC prefix each

    Traffic& operator+=(const Traffic& other);
  };
  Traffic train, evaluate;

  Histogram encode, decode;  // training only; seconds, without waits for a core
  double encode_cpu_seconds = 0, decode_cpu_seconds = 0;
  double last_receive_unix_seconds = 0;  // receiver; 0 if never

  MeasuredErrors errors;
  // Sender, where the level may change: LevelOf the last training message that a codec coded.
  std::optional<double> level;

  // Adds what another end of the same direction counted.
  BoundaryStatistics& operator+=(const BoundaryStatistics& other);
};

// Counters of a sender for one step of training.
struct StepStatistics {
  uint64_t step = 0;
  BoundaryStatistics::Traffic sent;
  MeasuredErrors errors;
  std::optional<double> level;  // as in BoundaryStatistics, over the messages of the step

  // Adds what another end of the same direction counted in the step.
  StepStatistics& operator+=(const StepStatistics& other);
};

// Seconds that an executor spent on each activity.
struct ActivitySeconds {
  struct Layers {
    double forward = 0, backward = 0, optimizer = 0;
  };
  struct Waits {
    double send = 0, receive = 0;
  };
  std::map<int, Layers> segments;  // the stage's segments, by number in model order
  std::map<int, Waits> waits;      // cuts to other stages, by number in model order
  double core_wait = 0;            // waits of layers for a core, not part of their seconds
  double data = 0;

  Layers AllSegments() const;  // sums over segments
};

// Returns every activity with its name on /metrics and in reports. "send_wait" and "receive_wait"
// are sums over the cuts to other stages.
std::array<std::pair<const char*, double>, 7> ByName(const ActivitySeconds& seconds);

// Adds its own lifetime to *seconds, unless that is null, and to the trace as `slice`. Reads no
// clock where there is neither.
class ScopedTimer {
 public:
  ScopedTimer(double* seconds, const PlannedSlice& slice) : seconds_(seconds), slice_(slice) {
    if (is_wanted()) start_ = SteadyTime::Now();
  }
  ~ScopedTimer() {
    if (!is_wanted()) return;
    const SteadyTime end = SteadyTime::Now();
    if (seconds_ != nullptr) *seconds_ += absl::ToDoubleSeconds(end - start_);
    if (slice_.trace != nullptr) slice_.Add(start_, end);
  }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

  // Replace what was planned.
  void set_name(const char* name) { slice_.slice.name = name; }
  void set_wire_bytes(uint64_t bytes) { slice_.slice.wire_bytes = bytes; }

 private:
  bool is_wanted() const { return seconds_ != nullptr || slice_.trace != nullptr; }

  double* seconds_;
  PlannedSlice slice_;
  SteadyTime start_;
};

// Counts of messages, in all and, of those that are sent in training, in single steps. Thread-safe.
class MessageCounts {
 public:
  // Add what a codec took for a training message; `level` is its codec's, where that may change.
  void AddEncoding(const Stopwatch::Reading& took, std::optional<double> level);
  void AddDecoding(const Stopwatch::Reading& took);
  // Notes that a message has come now.
  void AddReceived();
  // Adds what is sent in a step of training, with the level and the loss of its message where there
  // are any.
  void AddTraining(uint64_t step, const BoundaryStatistics::Traffic& sent,
                   std::optional<double> level, const std::optional<MeasuredError>& error);
  void AddEvaluation(const BoundaryStatistics::Traffic& sent);

  // Returns a copy of all counts.
  BoundaryStatistics all() const;
  // Removes and returns, in order, the counts of steps up to `last` that were not taken before.
  std::vector<StepStatistics> TakeSteps(uint64_t last);

 private:
  mutable std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  BoundaryStatistics all_ ABSL_GUARDED_BY(mutex_);
  std::deque<StepStatistics> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
