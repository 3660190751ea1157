// What each block does about the tensors that it keeps: pipeline.keep, and for blocks that it does
// not name pipeline.recompute, pipeline.stash and pipeline.swap. Also pipeline.memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/keeping.h"
#include "models/model.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Checks pipeline.keep and pipeline.memory; the rest of `experiment` must be resolved.
// InvalidArgument names the field, the value met and what is wanted.
absl::Status CheckKept(const Experiment& experiment);

// Returns what each block of the model does, in model order, for a resolved experiment.
absl::StatusOr<std::vector<BlockKeeping>> KeepingsFrom(const Experiment& experiment,
                                                       const Model& model);

// Makes blocks keep as little as they can, for stages of an experiment with pipeline.memory that do
// not train.
void KeepLeast(Experiment* experiment);

// Returns whether what blocks keep may leave the device: pipeline.swap is host or disk.
bool Swaps(const Experiment& experiment);

// Limit of a stage's memory.
struct MemoryLimit {
  std::optional<uint64_t> bytes;  // absent: what the stage's machine has left, less a margin
};
// Returns the limit; nothing if there is none.
absl::StatusOr<std::optional<MemoryLimit>> MemoryLimitFrom(const Experiment& experiment);

}  // namespace thinwire
