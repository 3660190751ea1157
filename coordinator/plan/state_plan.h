// Sizes and places of the state that feedback and rotation principal will keep, before anything
// runs.
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

// State of one direction of a cut that has feedback or principal axes.
struct PlannedState {
  std::string boundary;
  bool gradient = false;
  FeedbackSpec feedback;
  uint64_t rows = 0;  // number of rows: samples that have a state
  int sender_stage = 0, receiver_stage = 0;
  StateBytes bytes;         // of all rows at each end, after each has been visited
  uint64_t axes_bytes = 0;  // of principal axes at each end, in memory
};

struct StatePlan {
  std::vector<PlannedState> directions;  // in model order
  // Memory of each stage, sent and received directions together; without state in files.
  std::vector<uint64_t> stage_memory_bytes;
};

// Plans the state of the resolved `experiment`. InvalidArgument names the cut and the direction
// where limit_bytes is less than all rows take, if on_full makes a row without room end the run.
absl::StatusOr<StatePlan> PlanState(const Experiment& experiment);

// Returns ResourceExhausted if the state in memory exceeds `machine_bytes`; the error names the
// stage, its bytes and the direction that takes most of them. `one_machine`: all stages share that
// memory.
absl::Status CheckMemory(const StatePlan& plan, uint64_t machine_bytes, bool one_machine);

// Checks that files can be created in every feedback.dir. InvalidArgument names the first one in
// which this machine can create none.
absl::Status CheckFolders(const StatePlan& plan);

// Returns the bytes of this machine's memory.
uint64_t MachineMemoryBytes();

// Returns a table; empty if there is neither feedback nor principal axes.
std::string FormatState(const StatePlan& plan);

}  // namespace thinwire
