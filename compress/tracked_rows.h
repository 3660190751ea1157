// ef21's state A, as both ends change it: the same operations on the same numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/feedback_spec.h"
#include "compress/kernels.h"
#include "compress/message_rows.h"
#include "compress/state_store.h"
#include "tensor/tensor.h"

namespace thinwire {

// A <- A + d for the rows of a message; *used = A + d unless null, also of samples without a row,
// whose A is 0. `rows` are committed.
absl::Status AddToRows(const MessageRows& rows, const Tensor& d, CodecKernels* kernels,
                       StateStore* store, Tensor* used);

// A <- x; a row with NaN or infinity, which no codec could take back, becomes zero.
absl::Status SetRows(const MessageRows& rows, const Tensor& x, CodecKernels* kernels,
                     StateStore* store);

// True if messages of this step carry a digest.
bool IsDigestDue(const FeedbackSpec& spec, uint64_t step);
// Of the rows of a message as they are stored now.
absl::StatusOr<uint64_t> DigestOfRows(const MessageRows& rows, StateStore* store);

// True if a message must go exact, being the first of a row.
inline bool IsFirstVisit(const FeedbackSpec& spec, const MessageRows& rows) {
  return spec.init == StateInit::kExact && rows.num_new() > 0;
}

}  // namespace thinwire
