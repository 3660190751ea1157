// The state that training has given a stage, as files: parameters, optimizer state, and the state
// of the ends of cuts. docs/checkpoints.md describes the files; a StatePart names each.
//
// Both functions are called on the executor's thread between two steps, when everything sent has
// been received.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/stage.pb.h"
#include "stage_server/stage/local_stage.h"

namespace thinwire {

// Name of the part with parameters and running statistics.
inline constexpr char kModelPart[] = "model";
// Name of those of a replica, within a round of local steps. They are restored after the model.
inline constexpr char kReplicaModelPart[] = "replica_model";

struct StateFile {
  StatePart part;
  std::string bytes;  // a safetensors file, or
  // what it is made of when it is written. Frozen parameters may share the stage's memory, which
  // nobody writes in training; others are copies in host memory.
  std::vector<Parameter> parameters = {};

  bool empty() const { return bytes.empty() && parameters.empty(); }
};

// Parts of a stage's state that a copy has, besides what each carrier of replicas has for itself.
struct CopiedState {
  bool codec_state = false;             // of the ends of cuts
  std::set<std::string> left_out = {};  // frozen parameters that it lacks: tensors in files
  // What is the same at all carriers, wherever this stage is; otherwise only the first copies it.
  bool shared = false;
  bool outlives =
      false;  // the stage: frozen parameters are copies, too, in the form that they have
};

// Returns the bytes of the file.
uint64_t FileBytes(const StateFile& file);

// Writes the file in pieces. Stops at the first error of `sink`. Any thread.
absl::Status WriteFile(const StateFile& file, size_t piece_bytes,
                       const std::function<absl::Status(std::string_view)>& sink);

// Copies these parts to host memory. ResourceExhausted, naming both sizes, if they need more than
// `available_bytes`.
absl::StatusOr<std::vector<StateFile>> CopyState(LocalStage* stage, const CopiedState& what,
                                                 uint64_t available_bytes);

// Replaces one part by a file, which `next` gives in pieces; it returns false after the last.
// `step` is the step after which the part was copied. Of the model the parameters named in `kept`
// stay as they are; of a replica's parameters the frozen ones, as those of the model.
// InvalidArgument names a part that this stage does not have, or the tensor that does not fit.
// DataLoss says what makes it no safetensors file. The file of a cut's end is held as a whole:
// ResourceExhausted if it has more than `available_bytes`. After an error the part is unspecified.
absl::Status RestoreState(LocalStage* stage, const StatePart& part, uint64_t step,
                          uint64_t available_bytes,
                          const std::function<bool(std::string_view* piece)>& next,
                          const std::vector<std::string>& kept = {});

// Does the same with a file of CopyState.
absl::Status RestoreState(LocalStage* stage, const StateFile& file, uint64_t step,
                          uint64_t available_bytes);

}  // namespace thinwire
