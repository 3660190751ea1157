// Parts that both ends of a gRPC boundary stream share: a queue of frames to write, an inbox, and
// an orderly end.
//
// A stream is first waiting for a peer, then attached, then ending, then done. While attached it
// has one read and at most one write under way. Ending begins when the peer ends, when the peer
// breaks the protocol, or with Close. As soon as no write is under way, the reactor is told to
// Finish. Nothing is started after that, and OnDone must come. A stream closed with any status but
// Cancelled ends as if the peer had broken the protocol, so that the peer is told why.
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

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "grpcpp/grpcpp.h"
#include "transport/local_memory.h"
#include "wire/frame.h"
#include "wire/inbox.h"
#include "wire/link.h"
#include "wire/message.h"

namespace thinwire {

enum class Ending { kNone, kPeerEnded, kPeerRefused, kClosed };

// The operations that a stream starts on a client's or a server's reactor.
class StreamCalls {
 public:
  virtual ~StreamCalls() = default;
  virtual void StartRead(grpc::ByteBuffer* to) = 0;
  virtual void StartWrite(const grpc::ByteBuffer* from) = 0;
  // Makes the operations under way fail soon. Called with the stream's lock held.
  virtual void Cancel() = 0;
  // Lets OnDone come and tells the peer why, if there is a way. The last call.
  virtual void Finish(Ending ending, const absl::Status& reason) = 0;
  // Returns gRPC's name of the peer's address, "ipv4:127.0.0.1:4700".
  virtual std::string PeerAddress() const = 0;
  // Returns whether OnDone brings the status with which the peer ended.
  virtual bool status_follows() const = 0;
};

class GrpcStream {
 public:
  explicit GrpcStream(const LinkOptions& options) : options_(options), inbox_(options) {}

  const LinkOptions& options() const { return options_; }
  // Returns whether there is or has been a peer, or someone who dials it.
  bool attached() const;
  // Returns whether the stream is ending: nobody can attach, and who is attached leaves.
  bool ended() const;

  // Do what Link's functions do.
  uint64_t Send(Message message);
  absl::StatusOr<Message> Receive(SteadyTime deadline);
  void Close(const absl::Status& reason);
  // Ends the call without waiting until the peer has been told why. Called after Close.
  void Cancel();
  Way last_way() const { return last_way_; }
  absl::Status Flush(SteadyTime deadline);
  uint64_t SocketBytesAcked() const;

  // Waits until the peer has accepted; otherwise returns why it has not. Calls `stopped` every 100
  // ms and ends with its error.
  absl::Status WaitAccepted(SteadyTime deadline, const std::function<absl::Status()>& stopped);
  // Waits until no reactor is attached: OnDone has come, or there never was one. Returns false if
  // that is not so by the deadline.
  bool WaitDone(SteadyTime deadline);

  // Called by the reactor. Attach starts reading; frames may have their payloads in `memory`. It
  // returns false, and does nothing, if there was a reactor before or the stream is closed. `calls`
  // stays valid until OnDone.
  bool Attach(StreamCalls* calls, LocalMemory memory);
  // Takes note that the peer has accepted. With `shares` both ends have the host's memory of
  // Attach, which large payloads then go through. `device_ticket` names device memory in which the
  // peer receives; empty: it has none.
  void OnAccepted(bool shares, const std::string& device_ticket);
  void OnReadDone(bool ok);
  void OnWriteDone(bool ok);
  // Does not touch `this` any more once a waiter may have woken.
  void OnDone(const absl::Status& peer_status);

 private:
  void End(Ending ending, const absl::Status& reason);
  void WriteNext();
  void FinishIfIdle();
  std::string Waiting();

  // State of a message that is being sent in chunks. `header` is the message; the bytes of its
  // payload are not read from it.
  struct Sending {
    Message header;
    SteadyTime room_deadline;
    uint64_t wire_bytes = 0;  // of the chunks so far
    Way way = Way::kMemory;   // the slowest of the chunks so far

    void Take(Way chunk_way) { way = std::max(way, chunk_way); }
  };
  void SendFromHost(const Payload& payload, Sending* sending);
  absl::Status SendFromDevice(Payload payload, Sending* sending);
  // Sends a chunk that the host can read; `crc32c` is its checksum if known already.
  void SendChunk(const Payload& chunk_bytes, uint64_t chunk, std::optional<uint32_t> crc32c,
                 Sending* sending);
  absl::StatusOr<CopyQueue*> Copies();
  // Reserves a slot for `bytes` bytes if the peer shares the memory and the chunk is large enough
  // to gain by it.
  std::optional<uint32_t> Reserve(size_t bytes, SteadyTime deadline);
  OutgoingFrame FrameOf(uint64_t chunk, uint32_t payload_crc32c, Sending* sending) const;
  // A chunk of a payload on a device after its copy: in a slot, or in host memory if its place is
  // kHost.
  struct DeviceChunk {
    PayloadPlace place = PayloadPlace::kHost;
    uint32_t slot = 0;
    Payload on_host;
    uint32_t crc32c = 0;
  };
  // Returns where the device copies a chunk to, and sets all of *chunk but its checksum.
  absl::StatusOr<uint8_t*> PlaceFor(size_t bytes, SteadyTime deadline, DeviceChunk* chunk);
  absl::Status Submit(ByteSpan from, CopyQueue* queue, DeviceChunk* chunk, SteadyTime deadline);
  void SendCopied(const DeviceChunk& chunk, uint64_t index, Sending* sending);
  // Tells the peer of a chunk in a slot; `mark` says of which memory.
  void SendSlot(char mark, uint32_t slot, uint64_t chunk, uint32_t payload_crc32c,
                Sending* sending);
  void Push(grpc::ByteBuffer packed);

  bool SharesNow() const;
  absl::Status Take(const grpc::ByteBuffer& received);
  absl::Status Unpack(const grpc::ByteBuffer& buffer, IncomingFrame* to) const;

  const LinkOptions options_;
  Inbox inbox_;
  std::unique_ptr<CopyQueue> copies_;  // copies what is sent; made on first use
  Way last_way_ = Way::kMemory;        // for the sending thread

  mutable std::mutex mutex_;  // absl::Mutex's timed waits follow the wall clock
  std::condition_variable changed_;
  StreamCalls* calls_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool attached_ ABSL_GUARDED_BY(mutex_) = false;  // there is or has been a reactor
  bool accepted_ ABSL_GUARDED_BY(mutex_) = false;
  bool shares_ ABSL_GUARDED_BY(mutex_) = false;
  // Do not change once shares_ is true.
  LocalMemory memory_;
  std::unique_ptr<SendingDeviceSlots> device_slots_;  // null: no device memory of the peer
  std::string peer_address_ ABSL_GUARDED_BY(mutex_);
  std::deque<grpc::ByteBuffer> outbox_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  Ending ending_ ABSL_GUARDED_BY(mutex_) = Ending::kNone;
  absl::Status reason_ ABSL_GUARDED_BY(mutex_);  // why it ends
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  // gRPC owns each while its operation is under way; otherwise the lock guards it.
  grpc::ByteBuffer read_buffer_, write_buffer_;
};

// Makes the link that either end of a cut between processes returns. It closes the stream and waits
// for its end when it is destroyed. It keeps `stream` alive, and so the reactor that owns it.
std::unique_ptr<Link> NewStreamLink(std::shared_ptr<GrpcStream> stream);

}  // namespace thinwire
