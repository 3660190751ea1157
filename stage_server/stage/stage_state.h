// What training has made of a stage, as files: parameters, what the optimizer remembers, and what
// the ends of cuts do. docs/checkpoints.md describes them; StatePart says which one is what.
//
// Both functions: between two steps, when everything that was sent has been received, on the
// executor's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/stage.pb.h"
#include "stage_server/stage/local_stage.h"

namespace thinwire {

// The part of parameters and running statistics.
inline constexpr char kModelPart[] = "model";

struct StateFile {
  StatePart part;
  std::string bytes;  // a safetensors file
};

// All parts, copied to host memory. `codec_state`: those of the ends of cuts, too.
// ResourceExhausted where they take more than the `available_bytes` of memory, naming both.
absl::StatusOr<std::vector<StateFile>> CopyState(LocalStage* stage, bool codec_state,
                                                 uint64_t available_bytes);

// Replaces one part by the file whose pieces `next` gives, false after the last; `step` is the one
// that it was left with. InvalidArgument names a part that this stage does not have, or the tensor
// that does not fit; DataLoss says what makes it no safetensors file; ResourceExhausted where the
// file of an end of a cut, which is held as a whole, has more than `available_bytes`. After an
// error that part is unspecified.
absl::Status RestoreState(LocalStage* stage, const StatePart& part, uint64_t step,
                          uint64_t available_bytes,
                          const std::function<bool(std::string_view* piece)>& next);

}  // namespace thinwire
