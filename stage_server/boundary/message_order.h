// Tracks which training message comes next in one direction of a cut. Messages that change state
// are accepted only in that order. A repeated or wrongly numbered message would otherwise show only
// by the damage to the state.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "stage_server/boundary/epoch_rows.h"
#include "wire/message.h"

namespace thinwire {

// Not thread-safe.
class MessageOrder {
 public:
  // Expects the messages of `rows` from now on: step by step and, within a step, microbatch by
  // microbatch of those that cross here.
  void Start(std::shared_ptr<const EpochRows> rows);

  // Checks that `key` is the next message; InvalidArgument names the epoch, step and microbatch
  // wanted. When all announced messages have come, the first of the next step is accepted too,
  // since a peer may be ahead. Before the first Start every message is accepted.
  absl::Status Check(const MessageKey& key) const;

  // Returns whether all messages announced by Start have come, or Start was never called.
  bool is_complete() const { return rows_ == nullptr || step_ > rows_->last_step(); }
  // Counts the message that Check accepted as received. Requires !is_complete().
  void Advance();

  // Returns what Start was given; null before the first.
  const std::shared_ptr<const EpochRows>& rows() const { return rows_; }

 private:
  // Goes to the first message of the first step, from `step` on, that has any.
  void GoTo(uint64_t step);

  std::shared_ptr<const EpochRows> rows_;
  // Step and microbatch of the next message.
  uint64_t step_ = 0;
  uint32_t microbatch_ = 0;
};

}  // namespace thinwire
