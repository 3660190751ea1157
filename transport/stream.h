// What both ends of a gRPC boundary stream share: the queue of frames to write, the inbox, and an
// end of the stream that is started once and waited for.
//
// A stream lives through: waiting for a peer -> attached -> ending -> done. While attached it has
// one read and at most one write under way. Ending begins with the first of: the peer ends, the
// peer breaks the protocol, Close. As soon as no write is under way the reactor is then told to
// Finish, after which nothing is started any more and OnDone must come. A stream that is closed for
// another reason than Cancelled ends as if the peer had broken the protocol: it is told why.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "grpcpp/grpcpp.h"
#include "transport/shared_memory.h"
#include "wire/frame.h"
#include "wire/inbox.h"
#include "wire/link.h"
#include "wire/message.h"

namespace thinwire {

enum class Ending { kNone, kPeerEnded, kPeerRefused, kClosed };

// The operations of a client's or a server's reactor that a stream starts.
class StreamCalls {
 public:
  virtual ~StreamCalls() = default;
  virtual void StartRead(grpc::ByteBuffer* to) = 0;
  virtual void StartWrite(const grpc::ByteBuffer* from) = 0;
  // Makes operations under way fail soon. Called with the stream's lock held.
  virtual void Cancel() = 0;
  // The last call: lets OnDone come, and tells the peer why if there is a way.
  virtual void Finish(Ending ending, const absl::Status& reason) = 0;
  // gRPC's name of the peer's address, "ipv4:127.0.0.1:4700".
  virtual std::string PeerAddress() const = 0;
  // True where OnDone brings the status with which the peer ended.
  virtual bool status_follows() const = 0;
};

class GrpcStream {
 public:
  explicit GrpcStream(const LinkOptions& options) : options_(options), inbox_(options) {}

  // Before Attach: frames that come may have their payloads there.
  void Share(std::shared_ptr<SharedMemory> memory);

  const LinkOptions& options() const { return options_; }
  // Nobody can attach any more, and who is attached leaves.
  bool ended() const;

  // As in Link.
  uint64_t Send(Message message);
  absl::StatusOr<Message> Receive(SteadyTime deadline);
  void Close(const absl::Status& reason);
  // After Close: does not wait until the peer has been told why.
  void Cancel();
  Way last_way() const { return last_way_; }
  absl::Status Flush(SteadyTime deadline);
  uint64_t SocketBytesAcked() const;

  // Waits until the peer has accepted, else returns why it has not. Looks at `stopped` every 100 ms
  // and ends with its error.
  absl::Status WaitAccepted(SteadyTime deadline, const std::function<absl::Status()>& stopped);
  // True when no reactor is attached any more: its OnDone has come, or there never was one.
  bool WaitDone(SteadyTime deadline);

  // What the reactor calls. Attach starts reading and is refused (false) when there has been a
  // reactor before or the stream is closed; `calls` stays valid until OnDone.
  bool Attach(StreamCalls* calls);
  // `shares`: the peer, too, has the memory of Share, which large payloads then go through.
  void OnAccepted(bool shares);
  void OnReadDone(bool ok);
  void OnWriteDone(bool ok);
  // Touches `this` no more once a waiter may have woken.
  void OnDone(const absl::Status& peer_status);

 private:
  void End(Ending ending, const absl::Status& reason);
  void WriteNext();
  void FinishIfIdle();
  std::string Waiting();

  // Chunks of one message on their way out. `header` is the message; its payload's bytes are not
  // looked at.
  struct Sending {
    Message header;
    SteadyTime room_deadline;
    uint64_t wire_bytes = 0;  // of the chunks so far
    Way way = Way::kMemory;   // likewise, the slowest

    void Take(Way chunk_way) { way = std::max(way, chunk_way); }
  };
  void SendFromHost(const Payload& payload, Sending* sending);
  absl::Status SendFromDevice(Payload payload, Sending* sending);
  // A chunk that the host can read; its checksum, where that is known already.
  void SendChunk(const Payload& chunk_bytes, uint64_t chunk, std::optional<uint32_t> crc32c,
                 Sending* sending);
  absl::StatusOr<CopyQueue*> Copies();
  // A slot for so many bytes, if the peer has the memory, too, and it is worth it.
  std::optional<uint32_t> Reserve(size_t bytes, SteadyTime deadline);
  OutgoingFrame FrameOf(uint64_t chunk, uint32_t payload_crc32c, Sending* sending) const;
  void SendSlot(uint32_t slot, uint64_t chunk, uint32_t payload_crc32c, Sending* sending);
  void Push(grpc::ByteBuffer packed);

  bool SharesNow() const;
  absl::Status Take(const grpc::ByteBuffer& received);
  absl::Status Unpack(const grpc::ByteBuffer& buffer, IncomingFrame* to) const;

  const LinkOptions options_;
  Inbox inbox_;
  std::shared_ptr<SharedMemory> shared_;  // null: none
  std::unique_ptr<CopyQueue> copies_;     // of what is sent; made when it is needed
  Way last_way_ = Way::kMemory;           // the sending thread's

  mutable std::mutex mutex_;  // of timed waits, which absl::Mutex takes by the time of day
  std::condition_variable changed_;
  StreamCalls* calls_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool attached_ ABSL_GUARDED_BY(mutex_) = false;  // there is or has been a reactor
  bool accepted_ ABSL_GUARDED_BY(mutex_) = false;
  bool shares_ ABSL_GUARDED_BY(mutex_) = false;
  std::string peer_address_ ABSL_GUARDED_BY(mutex_);
  std::deque<grpc::ByteBuffer> outbox_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  Ending ending_ ABSL_GUARDED_BY(mutex_) = Ending::kNone;
  absl::Status reason_ ABSL_GUARDED_BY(mutex_);  // of the ending
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  // Each is gRPC's while its operation is under way, and under the lock otherwise.
  grpc::ByteBuffer read_buffer_, write_buffer_;
};

}  // namespace thinwire
