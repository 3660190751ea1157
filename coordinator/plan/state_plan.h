// What feedback and rotation principal will remember, and where, before anything runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/feedback/plan.h"
#include "compress/feedback/spec.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// One direction of a cut that has feedback or principal axes.
struct PlannedState {
  std::string boundary;
  bool gradient = false;
  FeedbackSpec feedback;
  uint64_t rows = 0;  // samples that have one
  int sender_stage = 0, receiver_stage = 0;
  StateBytes bytes;         // of all rows at either end, once each has been visited
  uint64_t axes_bytes = 0;  // of principal axes at each end, in memory
};

struct StatePlan {
  std::vector<PlannedState> directions;      // in model order
  std::vector<uint64_t> stage_memory_bytes;  // of both ends; state in files is not in it
};

// Samples that an epoch of the resolved `experiment` trains on.
absl::StatusOr<uint64_t> TrainingSamples(const Experiment& experiment);

// `experiment` is resolved. InvalidArgument naming cut and direction where limit_bytes is less than
// all rows take and a row without room ends the run.
absl::StatusOr<StatePlan> PlanState(const Experiment& experiment);

// ResourceExhausted if the state that is kept in memory is more than a machine has, naming the
// stage, its bytes and the directions that take most of them. `one_machine`: all stages share it.
absl::Status CheckMemory(const StatePlan& plan, uint64_t machine_bytes, bool one_machine);

// InvalidArgument naming the first feedback.dir in which no file can be made on this machine.
absl::Status CheckFolders(const StatePlan& plan);

// Bytes of this machine's memory.
uint64_t MachineMemoryBytes();

// A table; empty without either.
std::string FormatState(const StatePlan& plan);

}  // namespace thinwire
