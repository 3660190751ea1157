// The receiving end of a link: frames come in from the transport's thread, whole messages go out
// to whoever calls Receive.
//
// The transport's thread only looks at headers: what may not come next, or would be one message
// too many, is refused there, so a peer cannot make us hold more than `queue_capacity` messages of
// `max_payload_bytes`. Copying and summing the payload is left to the receiving thread, chunk by
// chunk as they arrive.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "wire/assembler.h"
#include "wire/frame.h"
#include "wire/frame_checker.h"
#include "wire/link.h"

namespace thinwire {

// The bytes of one frame, wherever they stand.
struct IncomingFrame {
  ByteSpans parts;
  std::shared_ptr<const void> owner;  // keeps `parts` alive
  bool is_direct = false;             // the last part: as in PayloadChunk
};

class Inbox {
 public:
  explicit Inbox(const LinkOptions& options);

  // The next frame of the peer. An error ends the inbox. One thread at a time.
  absl::Status Push(const IncomingFrame& frame);

  // No frame will follow. Messages that are complete can still be received, then comes `reason`.
  // The first end counts. Any thread.
  void End(const absl::Status& reason);

  // Ends with Unavailable: the peer "`how`", e.g. "closed the link". Any thread.
  void PeerIsGone(const std::string& how);

  // Ends and drops what nobody has received. Any thread.
  void Close(const absl::Status& reason);

  // What Link::Receive says; `waiting` completes "no message by the deadline" where it is not
  // empty. One thread at a time.
  absl::StatusOr<Message> Receive(SteadyTime deadline, const std::string& waiting);

 private:
  struct Arrived {
    PayloadChunk chunk;
    SteadyTime at = {};  // of a message's last chunk, where options_.stamps_arrivals
  };

  absl::StatusOr<PayloadChunk> Check(const IncomingFrame& frame);
  absl::Status Enqueue(Arrived arrived);
  absl::Status EndMet() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Overdue(const std::string& waiting) const;

  const LinkOptions options_;
  FrameChecker checker_;  // the pushing thread's
  Assembler assembler_;   // the receiving thread's, as is the next
  uint64_t num_received_ = 0;

  std::mutex mutex_;  // of timed waits, which absl::Mutex takes by the time of day
  std::condition_variable arrived_;
  std::deque<Arrived> chunks_ ABSL_GUARDED_BY(mutex_);
  int num_complete_ ABSL_GUARDED_BY(mutex_) = 0;  // messages whose last chunk is in chunks_
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
