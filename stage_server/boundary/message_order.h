// Which training message comes next in one direction of a cut. What changes state is taken in that
// order or not at all: a message that comes twice, or is numbered wrongly, would otherwise be found
// out only by what it has done to the state.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "stage_server/boundary/epoch_rows.h"
#include "wire/message.h"

namespace thinwire {

// One thread at a time.
class MessageOrder {
 public:
  // The messages that come from now on are those of `rows`, step after step and in each step
  // microbatch after microbatch.
  void Start(std::shared_ptr<const EpochRows> rows);

  // InvalidArgument naming the epoch, step and microbatch wanted, if the message can come neither
  // now nor, where all that Start announced have come, with the next Start: a peer may be ahead,
  // and then begins the step that follows. Before the first Start anything may.
  absl::Status Check(const MessageKey& key) const;

  // True if all messages that Start announced have come, or it was not called yet.
  bool is_complete() const { return rows_ == nullptr || step_ > rows_->last_step(); }
  // The message that Check accepted has come. Requires !is_complete().
  void Advance();

  // What Start was given; null before.
  const std::shared_ptr<const EpochRows>& rows() const { return rows_; }

 private:
  std::shared_ptr<const EpochRows> rows_;
  // The next message's.
  uint64_t step_ = 0;
  uint32_t microbatch_ = 0;
};

}  // namespace thinwire
