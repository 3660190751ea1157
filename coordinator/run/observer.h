// Who wants to know how a run goes: the record, the metrics, the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/trace/trace.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// What is known once every stage is configured.
struct RunPlan {
  struct Stage {
    std::string metrics;  // host:port of its /metrics, as seen from here; empty: none is known
  };

  uint32_t epochs = 0;
  uint64_t steps_per_epoch = 0;
  uint64_t train_samples = 0;
  std::vector<Stage> stages = {};
  std::string devices = {};  // what they compute on, for people: "cpu", "cpu, cuda:0 NVIDIA H200"
};

// Sums over training up to now.
struct RunTotals {
  std::vector<BoundaryRecord> boundaries;
  // 1 - (forward and backward seconds of all stages) / (stages x training seconds).
  double bubble_ratio = 0;
};

// How the test set is run.
enum class Inference {
  kCompressed,               // with the codecs
  kUncompressed,             // without
  kUncompressedRecalibrated  // without, batch norm statistics re-estimated without them
};

// Called by one thread at a time, in the order in which things happen. An error ends the run.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual absl::Status OnStart(const RunPlan&) { return absl::OkStatus(); }
  virtual absl::Status OnStep(const StepRecord&) { return absl::OkStatus(); }
  // About once a second and at the end of each epoch.
  virtual absl::Status OnTotals(const RunTotals&) { return absl::OkStatus(); }
  // What steps sent: of each step, cut and direction once, in no certain order, before OnTotals.
  virtual absl::Status OnTraffic(const std::vector<TrafficRecord>&) { return absl::OkStatus(); }
  // The epoch's last step, or that with which an interruption ended it, is done in every stage.
  virtual absl::Status OnTrained(uint32_t /*epoch*/) { return absl::OkStatus(); }
  // `inference` begins.
  virtual absl::Status OnEvaluation(uint32_t /*epoch*/, Inference) { return absl::OkStatus(); }
  // What was captured of one step: a safetensors file per stage (see stage.proto).
  virtual absl::Status OnCapture(uint64_t /*step*/, const std::vector<std::string>& /*files*/) {
    return absl::OkStatus();
  }
  // What is known of the asked steps, each time with all that was told before: when the last is
  // done, and where training pauses.
  virtual absl::Status OnTrace(const RunTrace&) { return absl::OkStatus(); }
  virtual absl::Status OnEpoch(const EpochRecord&) { return absl::OkStatus(); }
  // It is on the disk.
  virtual absl::Status OnCheckpoint(const CheckpointManifest&) { return absl::OkStatus(); }
  // The run goes on from a checkpoint. OnStart comes again before its next step.
  virtual absl::Status OnEvent(const RunEvent&) { return absl::OkStatus(); }
  // What it goes on without.
  virtual absl::Status OnWarning(const std::string& /*line*/) { return absl::OkStatus(); }
};

}  // namespace thinwire
