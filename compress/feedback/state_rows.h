// What a message does to the rows of state of its samples: the recursions of FeedbackSpec in few
// calls of the kernels, all rows at once where the store changes them in place, else one by one.
// State is finite: where a sum overflows, it begins anew from zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/feedback/message_rows.h"
#include "compress/feedback/spec.h"
#include "compress/feedback/state_store.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

// One thread at a time. What is computed is submitted to the device in the thread's order.
class StateRows {
 public:
  // Both outlive it.
  StateRows(StateStore* store, CodecKernels* kernels) : store_(store), kernels_(kernels) {}

  // The message that the rest is about: see MessageRows.
  absl::Status Plan(absl::Span<const uint64_t> keys, OnFull on_full) {
    return rows_.Plan(*store_, keys, on_full);
  }
  const MessageRows& message() const { return rows_; }

  // sum = x + sign s, s being the state, zeros of samples without a row.
  absl::Status AddTo(const Tensor& x, float sign, const Tensor& sum);
  // to = s.
  absl::Status Gather(const Tensor& to);

  // s <- 0. A row that is not there yet is zero already.
  absl::Status Clear();
  // These add the new rows that find room. s <- decay message - decay sent:
  absl::Status KeepErrors(float decay, const Tensor& message, const Tensor& sent);
  // s <- s + d; *used = s + d unless null, also of samples without a row.
  absl::Status Track(const Tensor& d, const Tensor* used);
  // s <- x; a row with NaN or infinity, which no codec could take back, becomes zero.
  absl::Status Set(const Tensor& x);

  // The digest of the rows as they are stored now.
  absl::StatusOr<uint64_t> Digest();

 private:
  // Samples whose rows are open together. Null are rows that were not there (`before`) or will not
  // be (`after`).
  struct Group {
    size_t first = 0, count = 0;
    RowsView before, after;
  };
  enum class Access { kRead, kWrite, kReadWrite };
  // Calls visit(group), which returns a Status, for one group after the other; saves what it wrote.
  template <typename Visit>
  absl::Status ForEachGroup(Access access, const Visit& visit);
  absl::StatusOr<Group> Open(Access access, size_t first);
  absl::Status Save(const Group& group);
  // Sums of the group's size, all else to be filled in.
  RowSums SumsOf(const Group& group) const;
  // The rows of x, null where one is not finite.
  absl::StatusOr<RowsView> FiniteRows(const Tensor& x, const Group& group);

  StateStore* const store_;
  CodecKernels* const kernels_;
  MessageRows rows_;
  std::vector<void*> before_, after_;  // where the rows of the open group lie
};

// True if messages of this step carry a digest.
inline bool IsDigestDue(const FeedbackSpec& spec, uint64_t step) {
  return spec.kind == FeedbackKind::kEf21 && spec.digest_every > 0 && step % spec.digest_every == 0;
}

// True if a message must go exact, being the first of a row.
inline bool IsFirstVisit(const FeedbackSpec& spec, const MessageRows& rows) {
  return spec.init == StateInit::kExact && rows.num_new() > 0;
}

}  // namespace thinwire
