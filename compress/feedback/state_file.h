// State of one end of a boundary as named tensors in a safetensors file.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "compress/feedback/state_store.h"
#include "tensor/tensor.h"

namespace thinwire {

// KeptAxes as a file holds them.
struct StoredAxes {
  std::string bytes;  // empty: none
  uint64_t messages = 0;
};

// Hands the file to `sink` row by row; stops at its first error. Tensors:
//   PREFIX.keys U64 [rows];
//   PREFIX.rows as stored: F32 [rows, elements], else U8 [rows, bytes of a row];
//   PREFIX.warm_start F32, low_rank's factor;
//   PREFIX.axes U8 [bytes], as they were sent, and PREFIX.axes_messages U64 [1].
// The metadata give the storage by its name. `state` may be null and the others empty; they are
// then left out.
absl::Status WriteState(const std::string& prefix, StateStore* state, const Tensor& warm_start,
                        const StoredAxes& axes,
                        const std::function<absl::Status(std::string_view)>& sink);

// Reads such a file: `state` gets its rows and no others, in the same order. InvalidArgument names
// the tensor that is missing, has another shape or type, or has no place at this end; state is then
// unspecified.
absl::Status ReadState(const std::string& prefix, std::string_view file, StateStore* state,
                       Tensor* warm_start, StoredAxes* axes);

}  // namespace thinwire
