// State of one end of a boundary as named tensors in a safetensors file.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/safetensors.h"
#include "compress/feedback/state_store.h"

namespace thinwire {

// Hands the file to `sink` row by row; stops at its first error. Tensors:
//   PREFIX.keys U64 [rows];
//   PREFIX.rows as stored: F32 [rows, elements], else U8 [rows, bytes of a row];
//   PREFIX.NAME for each of `carried`, the parts of what the codec left (Carry).
// The metadata give the storage by its name. Without `state`, which may be null, rows are left out.
absl::Status WriteState(const std::string& prefix, StateStore* state,
                        absl::Span<const StoredTensor> carried,
                        const std::function<absl::Status(std::string_view)>& sink);

// Reads such a file: `state` gets its rows and no others, in the same order; *carried gets the
// other tensors, as views of `file`. InvalidArgument names the tensor that is missing, has another
// shape or type, or has no place at this end; state is then unspecified.
absl::Status ReadState(const std::string& prefix, std::string_view file, StateStore* state,
                       std::vector<StoredTensor>* carried);

// Reads the file of a sender at the receiving end: `state`, which is null where only senders have
// any, and what the codec left.
absl::Status ReadReceived(const std::string& prefix, std::string_view file, StateStore* state,
                          std::vector<StoredTensor>* carried);

}  // namespace thinwire
