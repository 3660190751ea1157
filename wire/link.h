// One end of one boundary. It sends and receives whole messages, in order, over memory or gRPC.
// Checksums, chunks, fencing and limits are handled below it; codecs and message keys above.
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

// Numbers of links from here on are among carriers of replicas: this plus the dialling one's.
inline constexpr uint32_t kPeerCuts = uint32_t{1} << 31;

// Fewest bytes of a payload, except an exact one, that is better left to a device's copies: they
// and the small reads of a decoder's checks take some microseconds, whatever the length.
inline constexpr size_t kLeastCodedOnDevice = 64 << 10;

// Terms that both ends must agree on, and what this end accepts.
struct LinkOptions {
  std::string name;         // of the cut, in messages: "layer1"
  std::string peer;         // of the peer, in messages: "stage 2 (unix:/…/stage2.sock)"
  uint64_t run = 0;         // digest of the run's id
  uint64_t generation = 0;  // frames of another generation are refused
  // Secret that the dialling end shows, between processes; kMinSecretBytes of base/secret.h or
  // more.
  std::string secret;
  uint32_t cut = 0;  // among carriers: the number of the link, from kPeerCuts
  // Carrier of the dialling end, where several machines of its stage dial this cut of the other.
  uint32_t dialler = 0;
  // Returns the number that the dialling end names, and by which the other one knows it.
  uint32_t number() const { return cut + (dialler << 16); }
  // True of a link to the machine that has the same stage of another carrier. It carries what
  // replicas exchange and nothing else.
  bool is_among_carriers = false;
  // True of such a link whose ends carry tensor-parallel parts of the same replicas. It carries
  // their partial sums, in both directions, and PHASE_PART.
  bool is_among_parts = false;
  Direction receives = DIRECTION_UNSPECIFIED;  // direction of what the peer sends
  // Most payload bytes of a received message. A header that claims more is refused before anything
  // is allocated.
  uint64_t max_payload_bytes = 0;
  // Number of received messages that may wait to be taken. One more is a protocol error of the
  // peer.
  int queue_capacity = 1;
  // Called for each frame that came, on the thread that brought it; may be empty.
  std::function<void()> on_frame;
  bool stamps_arrivals = false;  // received messages say when their last byte came
  // Allocates the host memory in which received payloads are gathered; null: CpuDevice() does.
  Device* host = nullptr;
  // The device of the tensors and its copies to shared memory, if it has such. Messages may then be
  // sent from its memory. Those received through memory of both ends are gathered there if they are
  // exact, or are of a codec of which `decodes_on_device` says that it takes them there (empty:
  // none does) and not short. If both are null, all is done on the host.
  Device* device = nullptr;
  DirectCopies* copies = nullptr;
  std::function<bool(const CodecSpec&)> decodes_on_device;
  // Offers memory of the device to a peer that can open it, and opens what such a peer offers.
  bool device_slots = true;
  // Longest time that Send may wait for room in shared memory. What finds no room goes through the
  // socket.
  absl::Duration room_patience = absl::ZeroDuration();
  // Called with a line for people about anything slower than it could be; may be empty. Any thread.
  std::function<void(const std::string&)> on_note;
};

// The way that a payload's chunk takes, from fastest to slowest.
enum class Way {
  kMemory,        // stays where it is, within a process
  kDeviceSlots,   // a device copies it to memory of the peer's device
  kDeviceCopies,  // a device copies it to shared memory of the host
  kHostCopies,    // the CPU copies it to shared memory
  kSocket,
};

class Link {
 public:
  virtual ~Link() = default;

  // Queues the message and returns its wire bytes: serialised frames plus 5 bytes of gRPC prefix
  // each. The payload is referenced, not copied, with two exceptions: it goes through shared
  // memory, for whose room Send may wait, or it is a device's. Nothing holds a device's payload any
  // more when its last chunk has left. After an error or Close nothing is sent. Any thread, but the
  // messages of one link come from one thread at a time.
  virtual uint64_t Send(Message message) = 0;

  // Returns the next message. DeadlineExceeded if none came by `deadline`. Otherwise the first
  // error of the link: DataLoss (checksum), FailedPrecondition (run, generation), InvalidArgument
  // (malformed or over a limit), ResourceExhausted (queue full), Unavailable (the peer is gone) or
  // Cancelled (Close). Every error names the cut and the peer. One thread at a time.
  virtual absl::StatusOr<Message> Receive(SteadyTime deadline) = 0;

  // Ends both directions and wakes Receive, which then returns `reason`. Unless that is Cancelled,
  // a downstream end also tells its upstream peer. Idempotent; any thread.
  virtual void Close(absl::Status reason) = 0;

  // Waits until everything queued has been handed to the transport.
  virtual absl::Status Flush(SteadyTime deadline) = 0;

  // Returns the device whose memory payloads may be in; null: host memory only.
  virtual const Device* sends_from() const { return nullptr; }

  // Returns the slowest way that a chunk of the last message took. Called on the sending thread.
  virtual Way last_way() const { return Way::kMemory; }

  // Returns tcpi_bytes_acked of the connection since it was made; 0 without a TCP socket.
  virtual uint64_t SocketBytesAcked() const = 0;
};

}  // namespace thinwire
