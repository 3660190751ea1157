// Decides whether a frame may come next on a link, and reads its header. It looks at headers and
// sizes only, so it runs before anything is kept or allocated.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "wire/frame.h"
#include "wire/link.h"

namespace thinwire {

// Returns "cut layer1", or "replicas" of a link among carriers.
std::string LinkName(const LinkOptions& options);

// Returns "cut layer1, from stage 2 (10.0.0.7:4700)", with which every error of a link begins.
std::string LinkAndPeer(const LinkOptions& options);

// Places where the bytes of a payload can be.
enum class PayloadPlace {
  kHost,    // in memory that the host copies
  kLocked,  // in pages of the host that the device of LinkOptions copies itself, once locked
  kDevice,  // in memory that this device reads, and the host cannot
};

// Place and owner of a frame's payload, which the transport fills in.
struct PayloadOrigin {
  std::shared_ptr<const void> owner;  // keeps it alive
  PayloadPlace place = PayloadPlace::kHost;
  // Locks its pages, of place kLocked; false: they cannot be. Called on the receiving thread.
  std::function<bool()> lock_pages;
  const char* came_by = "the socket";  // for errors
};

// A checked frame in our own types; its header need not be read again.
struct PayloadChunk : PayloadOrigin {
  std::optional<MessageHeader> message;  // set in the first chunk of a message
  uint64_t message_bytes = 0;            // payload bytes of all chunks of the message
  uint32_t index = 0, count = 1;         // among the message's chunks
  ByteSpans payload;                     // as in ParsedFrame
  uint32_t payload_crc32c = 0;           // the checksum that it should have

  bool is_last() const { return index + 1 == count; }
};

class FrameChecker {
 public:
  explicit FrameChecker(const LinkOptions& options) : options_(options) {}

  // Checks the next frame. FailedPrecondition for another run or generation. InvalidArgument for
  // anything else that is wrong; it names the field, its value and the one wanted. After an error
  // the link is lost. Not thread-safe.
  absl::StatusOr<PayloadChunk> Check(const ParsedFrame& frame);

 private:
  absl::StatusOr<PayloadChunk> Read(const ParsedFrame& frame);
  absl::Status CheckFence(const FrameHeader& header) const;
  absl::Status CheckKey(const FrameHeader& header) const;
  absl::StatusOr<MessageHeader> ReadFirst(const FrameHeader& header) const;
  absl::Status CheckContinues(const FrameHeader& header) const;

  const LinkOptions options_;
  FrameHeader first_;        // first chunk of the current message
  uint32_t next_chunk_ = 0;  // 0 between messages
};

}  // namespace thinwire
