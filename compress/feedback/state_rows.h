// Effect of a message on the rows of state of its samples: the recursions of FeedbackSpec in few
// kernel calls. All rows are handled at once if the store changes them in place, otherwise one by
// one. State stays finite: where a sum overflows, it starts again from zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compress/feedback/spec.h"
#include "compress/feedback/state_store.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

// Lookup of a message's rows in a store: which exist, which are new, which find no room. This
// depends only on the order of messages, so both ends decide alike.
class MessageRows {
 public:
  // Looks up the keys, which stay valid until Commit. ResourceExhausted, naming limit, bytes wanted
  // and rows, if they do not fit and `on_full` is kError; InvalidArgument if a key comes twice.
  absl::Status Plan(const StateStore& store, absl::Span<const uint64_t> keys, OnFull on_full);
  // Adds the new rows to the store; from now on all stored ones have a number.
  absl::Status Commit(StateStore* store);

  size_t size() const { return rows_.size(); }
  // Return whether the row of sample i was written before this message; whether it has a number: a
  // new row has none before Commit, and never gets one if it found no room.
  bool is_known(size_t i) const { return rows_[i].known; }
  bool is_there(size_t i) const { return rows_[i].number != StateStore::kAbsent; }
  size_t number(size_t i) const { return rows_[i].number; }
  // Returns the number of new rows that find room.
  size_t num_new() const { return num_new_; }
  std::string NewKeys() const;  // "7, 9, ... (12 in all)"

 private:
  struct Row {
    size_t number;
    bool known, stored;
  };
  absl::Status CheckKeysDiffer();

  absl::Span<const uint64_t> keys_;
  std::vector<Row> rows_;
  std::vector<uint64_t> sorted_;
  size_t num_new_ = 0;
};

// Returns whether all numbers of x, a tensor on the kernels' device, are finite.
absl::StatusOr<bool> IsFinite(const TensorView& x, CodecKernels* kernels);

// Returns e.g. "7, 9, 4, ... (12 in all)", with at most eight keys.
std::string ListOfKeys(absl::Span<const uint64_t> keys);

// Rows of state of one message at a time. One thread at a time. Its arithmetic is submitted to the
// device in the thread's order.
class StateRows {
 public:
  // Uses `store` and `kernels`, which outlive it.
  StateRows(StateStore* store, CodecKernels* kernels) : store_(store), kernels_(kernels) {}

  // Chooses the message for all other calls; see MessageRows.
  absl::Status Plan(absl::Span<const uint64_t> keys, OnFull on_full) {
    return rows_.Plan(*store_, keys, on_full);
  }
  const MessageRows& message() const { return rows_; }

  // Computes sum = x + sign s. The state s is zero for samples without a row.
  absl::Status AddTo(const Tensor& x, float sign, const Tensor& sum);
  // Computes to = s.
  absl::Status Gather(const Tensor& to);

  // Sets s <- 0. A row that does not exist yet is zero already.
  absl::Status Clear();
  // Sets s <- decay message - decay sent. This call and the next two add the new rows that find
  // room.
  absl::Status KeepErrors(float decay, const Tensor& message, const Tensor& sent);
  // Sets s <- s + d, and *used = s + d unless `used` is null, also for samples without a row.
  absl::Status Track(const Tensor& d, const Tensor* used);
  // Sets s <- x. A row with NaN or infinity, which no codec could take back, becomes zero.
  absl::Status Set(const Tensor& x);

  // Returns the digest of the rows as they are stored now.
  absl::StatusOr<uint64_t> Digest();

 private:
  // Samples whose rows are open at the same time. A row is null if it did not exist (`before`) or
  // will not (`after`).
  struct Group {
    size_t first = 0, count = 0;
    RowsView before, after;
  };
  enum class Access { kRead, kWrite, kReadWrite };
  // Calls visit(group), which returns a Status, for one group after the other, and saves what it
  // wrote.
  template <typename Visit>
  absl::Status ForEachGroup(Access access, const Visit& visit);
  absl::StatusOr<Group> Open(Access access, size_t first);
  absl::Status Save(const Group& group);
  // Returns sums of the group's size, with all else to be filled in.
  RowSums SumsOf(const Group& group) const;
  // Returns the rows of x, null where one is not finite.
  absl::StatusOr<RowsView> FiniteRows(const Tensor& x, const Group& group);

  StateStore* const store_;
  CodecKernels* const kernels_;
  MessageRows rows_;
  std::vector<void*> before_, after_;  // where the rows of the open group lie
};

// Returns true if messages of this step carry a digest.
inline bool IsDigestDue(const FeedbackSpec& spec, uint64_t step) {
  return spec.kind == FeedbackKind::kEf21 && spec.digest_every > 0 && step % spec.digest_every == 0;
}

// Returns true if a message must be sent exactly because it is the first of a row.
inline bool IsFirstVisit(const FeedbackSpec& spec, const MessageRows& rows) {
  return spec.init == StateInit::kExact && rows.num_new() > 0;
}

}  // namespace thinwire
