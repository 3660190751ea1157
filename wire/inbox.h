// The receiving end of a link. The transport's thread pushes frames, and Receive returns whole
// messages.
//
// The transport's thread only looks at headers. It refuses what may not come next and messages
// beyond the queue's capacity. So a peer cannot make this end hold more than `queue_capacity`
// messages of `max_payload_bytes`. Copying and checking payloads is left to the receiving thread,
// chunk by chunk as they arrive.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
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

// The bytes of one frame, wherever they are. `place` is that of the last part; the others are the
// host's. `owner` keeps all of them alive.
struct IncomingFrame : PayloadOrigin {
  ByteSpans parts;
};

class Inbox {
 public:
  explicit Inbox(const LinkOptions& options);

  // Takes the next frame of the peer. An error ends the inbox. One thread at a time.
  absl::Status Push(const IncomingFrame& frame);

  // Says that no frame will follow. Complete messages can still be received; after them Receive
  // returns `reason`. Only the first end counts. Any thread.
  void End(const absl::Status& reason);

  // Ends the inbox with Unavailable: the peer "`how`", e.g. "closed the link". Any thread.
  void PeerIsGone(const std::string& how);

  // Ends the inbox and drops what nobody has received. Any thread.
  void Close(const absl::Status& reason);

  // Does what Link::Receive says. `waiting`, if not empty, completes the error "no message by the
  // deadline". One thread at a time.
  absl::StatusOr<Message> Receive(SteadyTime deadline, const std::string& waiting);

 private:
  struct Arrived {
    PayloadChunk chunk;
    SteadyTime at = {};  // of a message's last chunk, with options_.stamps_arrivals
  };

  absl::StatusOr<PayloadChunk> Check(const IncomingFrame& frame);
  absl::StatusOr<PayloadPlace> PlaceOf(const PayloadChunk& chunk, const IncomingFrame& frame) const;
  absl::Status Enqueue(Arrived arrived);
  absl::Status EndMet() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Overdue(const std::string& waiting) const;

  const LinkOptions options_;
  FrameChecker checker_;  // for the pushing thread
  Assembler assembler_;   // for the receiving thread, as is num_received_
  uint64_t num_received_ = 0;

  std::mutex mutex_;  // absl::Mutex's timed waits follow the wall clock
  std::condition_variable arrived_;
  std::deque<Arrived> chunks_ ABSL_GUARDED_BY(mutex_);
  int num_complete_ ABSL_GUARDED_BY(mutex_) = 0;  // messages whose last chunk is in chunks_
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
