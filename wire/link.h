// One end of one boundary: whole messages go out and come in, in order, over memory or gRPC.
// Checksums, chunks, fencing and limits are dealt with below; codecs and keys above.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "tensor/device.h"
#include "tensor/direct_copies.h"
#include "wire/message.h"

namespace thinwire {

// What both ends must agree on, and what this end accepts.
struct LinkOptions {
  std::string name;         // of the cut, for messages: "layer1"
  std::string peer;         // for messages: "stage 2 (unix:/…/stage2.sock)"
  uint64_t run = 0;         // digest of the run's id
  uint64_t generation = 0;  // a frame with another one is refused
  // Between processes: what the end that dials shows (kMinSecretBytes of base/secret.h or more).
  std::string secret;
  uint32_t cut = 0;
  Direction receives = DIRECTION_UNSPECIFIED;  // what the peer sends
  // The most that one received message may have; a header that claims more is refused before
  // anything is allocated.
  uint64_t max_payload_bytes = 0;
  // How many received messages may wait to be taken; one more is the peer's protocol error.
  int queue_capacity = 1;
  // Called with each frame that came, on whatever thread brought it; may be empty.
  std::function<void()> on_frame;
  bool stamps_arrivals = false;  // received messages say when their last byte came
  // Memory of the host that received payloads are gathered in; null: that of CpuDevice().
  Device* host = nullptr;
  // The device of the tensors, where it has such copies: exact messages may be sent from its
  // memory, and those that come by memory of both ends are gathered there. Null, both: nowhere but
  // on the host.
  Device* device = nullptr;
  DirectCopies* copies = nullptr;
  // How long Send may wait for room in memory of both ends; what finds none goes by the socket.
  absl::Duration room_patience = absl::ZeroDuration();
  // Called with a line for people about what is slower than it could be; may be empty. Any thread.
  std::function<void(const std::string&)> on_note;
};

// The way that a payload's chunk takes, from the fastest.
enum class Way {
  kMemory,        // stays where it is, within a process
  kDeviceCopies,  // a device copies it to memory of both ends
  kHostCopies,    // the CPU does
  kSocket,
};

class Link {
 public:
  virtual ~Link() = default;

  // Queues the message; its payload is referenced, not copied, unless memory of both ends has it
  // (for which room is waited for) or it is a device's. Nothing holds a device's payload when the
  // last of it leaves. After an error or Close nothing is sent. Any thread, but messages of one
  // link from one thread at a time. Returns the message's wire bytes: serialised frames + 5 bytes
  // of gRPC prefix each.
  virtual uint64_t Send(Message message) = 0;

  // The next message. DeadlineExceeded when none came by `deadline`; otherwise the first error of
  // the link: DataLoss (checksum), FailedPrecondition (run, generation), InvalidArgument (malformed
  // or over a limit), ResourceExhausted (queue full), Unavailable (the peer is gone), Cancelled
  // (Close). Every error names the cut and the peer. One thread at a time.
  virtual absl::StatusOr<Message> Receive(SteadyTime deadline) = 0;

  // Ends both directions and wakes Receive, which then returns `reason`. Unless that is Cancelled
  // the upstream peer of a downstream end is told it, too. Idempotent; any thread.
  virtual void Close(absl::Status reason) = 0;

  // Waits until everything that was queued has been handed to the transport.
  virtual absl::Status Flush(SteadyTime deadline) = 0;

  // The device whose memory payloads may stand in; null: the host's only.
  virtual const Device* sends_from() const { return nullptr; }

  // The slowest way that a chunk of the last message took. The thread's that sends.
  virtual Way last_way() const { return Way::kMemory; }

  // tcpi_bytes_acked of the connection since it was made; 0 where there is no TCP socket.
  virtual uint64_t SocketBytesAcked() const = 0;
};

}  // namespace thinwire
