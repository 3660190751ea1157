// Interface of those that follow a run: the record, the metrics, the terminal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/trace/trace.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// Facts that are known once every stage is configured.
struct RunPlan {
  struct Stage {
    std::string metrics;  // host:port of its /metrics, as seen from here; empty: unknown
  };

  // Returns the number of steps of the run, and that of the step with which an epoch ends.
  uint64_t steps() const { return std::min(epochs * steps_per_epoch, most_steps); }
  uint64_t EndOf(uint32_t epoch) const { return std::min(epoch * steps_per_epoch, most_steps); }
  // Returns the epoch of a step, both from 1.
  uint32_t EpochOf(uint64_t step) const {
    return static_cast<uint32_t>((step - 1) / steps_per_epoch + 1);
  }

  uint32_t epochs = 0;
  uint64_t steps_per_epoch = 0;
  uint64_t train_samples = 0;
  std::vector<Stage> stages = {};  // of one carrier of the replicas after the other
  uint32_t carriers = 1;
  std::vector<int> stage_carriers = {};  // numbers of machines of the stages, if they differ
  std::string devices = {};  // devices of the stages, for people: "cpu", "cpu, cuda:0 NVIDIA H200"
  // The run ends with this step, if it comes within its epochs.
  uint64_t most_steps = std::numeric_limits<uint64_t>::max();
};

// Sums over training so far.
struct RunTotals {
  std::vector<BoundaryRecord> boundaries;
  ReplicasRecord replicas;  // without contributions if there is one replica
  DirectionRecord stash;    // without messages if nothing is stashed
  SwapRecord swap;          // without bytes if nothing left the devices
  // 1 - (forward and backward seconds of all stages) / (stages x training seconds).
  double bubble_ratio = 0;
};

// Ways to run the test set.
enum class Inference {
  kCompressed,    // with the codecs
  kUncompressed,  // without the codecs
  // Without, after the statistics of batch norm were estimated again without them.
  kUncompressedRecalibrated
};

// Receives the events of a run in their order, from one thread at a time. An error ends the run.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual absl::Status OnStart(const RunPlan&) { return absl::OkStatus(); }
  virtual absl::Status OnStep(const StepRecord&) { return absl::OkStatus(); }
  // Comes about once a second and at the end of each epoch.
  virtual absl::Status OnTotals(const RunTotals&) { return absl::OkStatus(); }
  // Reports the bytes that steps sent, before OnTotals: one record for each step, cut and
  // direction, in no particular order.
  virtual absl::Status OnTraffic(const std::vector<TrafficRecord>&) { return absl::OkStatus(); }
  // Tells that an evaluation begins.
  virtual absl::Status OnEvaluation(uint32_t /*epoch*/, Inference) { return absl::OkStatus(); }
  // Reports an evaluation after a step; that after an epoch comes with OnEpoch.
  virtual absl::Status OnEvaluated(const EvaluationRecord&) { return absl::OkStatus(); }
  // Reports the captures of one step: a safetensors file per stage (see stage.proto).
  virtual absl::Status OnCapture(uint64_t /*step*/, const std::vector<std::string>& /*files*/) {
    return absl::OkStatus();
  }
  // Reports all that is known of the steps to trace: after the last of them, and where training
  // pauses. Each report includes the earlier ones.
  virtual absl::Status OnTrace(const RunTrace&) { return absl::OkStatus(); }
  virtual absl::Status OnEpoch(const EpochRecord&) { return absl::OkStatus(); }
  // Tells that the checkpoint is on the disk.
  virtual absl::Status OnCheckpoint(const CheckpointManifest&) { return absl::OkStatus(); }
  // Tells that the run continues from a checkpoint, and OnStart comes again before its next step;
  // or that it ends early.
  virtual absl::Status OnEvent(const RunEvent&) { return absl::OkStatus(); }
  // Reports a problem in spite of which the run goes on.
  virtual absl::Status OnWarning(const std::string& /*line*/) { return absl::OkStatus(); }
};

}  // namespace thinwire
