// What a stage counts while it works. Plain sums; metrics.h shows them to Prometheus, service.h
// sends them to the coordinator.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/steady_time.h"
#include "base/stopwatch.h"
#include "compress/checks/distortion.h"
#include "monitoring/buckets.h"
#include "stage_server/boundary/step_trace.h"

namespace thinwire {

// Durations in buckets of fixed bounds, as Prometheus wants them.
class Histogram {
 public:
  static constexpr auto kBounds = DecimalBounds<-5, 6>();  // 10 us to 10 s, in seconds
  void Observe(double seconds);
  // Observations not above kBounds[i]; the last is above all bounds.
  const std::array<uint64_t, kBounds.size() + 1>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::array<uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

// What the codec made of one message, and what feedback owed then.
struct CodecError {
  double relative_error = 0;     // ||m - D(C(m))|| / ||m|| of what the codec got
  double relative_residual = 0;  // ||e|| / ||x||; under ef21 ||x - A|| / ||x||
};

// What one message lost.
struct MeasuredError {
  Distortion received;              // of what the receiver uses, against the tensor
  std::optional<CodecError> codec;  // absent if the message went exact: no codec had part in it
};

// Sums over many messages.
struct MeasuredErrors {
  uint64_t messages = 0;
  double relative_error = 0, cosine = 0, nonzero_fraction = 0;  // of what the receiver uses
  // Sums over the messages that did not go exact, and what the last of them lost.
  uint64_t coded_messages = 0;
  CodecError codec, last_codec;

  // A message whose error relative to zeros is no number does not count: no mean would be one.
  void Add(const MeasuredError& error);
};

// What one end of one direction of a cut has counted. A sender fills all but `decode`, a receiver
// only that.
struct BoundaryStatistics {
  struct Traffic {
    uint64_t messages = 0;
    uint64_t elements = 0;
    uint64_t raw_bytes = 0;  // elements x compute type
    uint64_t payload_bytes = 0;
    uint64_t wire_bytes = 0;  // serialised frames + 5 bytes of gRPC prefix each

    Traffic& operator+=(const Traffic& other);
  };
  Traffic train, evaluate;

  Histogram encode, decode;  // seconds without waits for a core, training
  double encode_cpu_seconds = 0, decode_cpu_seconds = 0;
  double last_receive_unix_seconds = 0;  // receiver; 0: never

  MeasuredErrors errors;
  // Sender: LevelOf the last training message that a codec coded, where the level may change.
  std::optional<double> level;
};

// What a sender sent in one step of training.
struct StepStatistics {
  uint64_t step = 0;
  BoundaryStatistics::Traffic sent;
  MeasuredErrors errors;
  std::optional<double> level;  // as in BoundaryStatistics, of messages of the step
};

// What an executor spends its time on.
struct ActivitySeconds {
  struct Layers {
    double forward = 0, backward = 0, optimizer = 0;
  };
  struct Waits {
    double send = 0, receive = 0;
  };
  std::map<int, Layers> segments;  // that the stage has, by their number in model order
  std::map<int, Waits> waits;      // at the cuts to other stages, likewise
  double core_wait = 0;            // of layers, for a core: no part of theirs
  double data = 0;

  Layers AllSegments() const;  // the sums
};

// Every activity by its name on /metrics and in reports; "send_wait" and "receive_wait" are the
// sums over those cuts.
std::array<std::pair<const char*, double>, 7> ByName(const ActivitySeconds& seconds);

// Adds its own lifetime to *seconds, and to the trace as that slice.
class ScopedTimer {
 public:
  ScopedTimer(double* seconds, const PlannedSlice& slice)
      : seconds_(seconds), slice_(slice), start_(SteadyTime::Now()) {}
  ~ScopedTimer() {
    const SteadyTime end = SteadyTime::Now();
    *seconds_ += absl::ToDoubleSeconds(end - start_);
    if (slice_.trace != nullptr) slice_.Add(start_, end);
  }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

 private:
  double* seconds_;
  PlannedSlice slice_;
  SteadyTime start_;
};

// For what computes on the thread: its waits for a core count to *core_wait, and not to *seconds.
class ComputeTimer {
 public:
  ComputeTimer(double* seconds, double* core_wait, const PlannedSlice& slice)
      : seconds_(seconds), core_wait_(core_wait), slice_(slice) {}
  ~ComputeTimer() {
    const Stopwatch::Reading reading = stopwatch_.Read();
    *seconds_ += reading.seconds;
    *core_wait_ += reading.core_wait_seconds;
    if (slice_.trace != nullptr) slice_.Add(reading);
  }
  ComputeTimer(const ComputeTimer&) = delete;
  ComputeTimer& operator=(const ComputeTimer&) = delete;

 private:
  double* seconds_;
  double* core_wait_;
  PlannedSlice slice_;
  const Stopwatch stopwatch_;
};

}  // namespace thinwire
