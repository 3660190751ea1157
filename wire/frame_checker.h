// Decides whether a frame may come next on a link, and reads its header while at it: looks at
// headers and sizes only, so it runs before anything is kept or allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "wire/frame.h"
#include "wire/link.h"

namespace thinwire {

// "cut layer1, from stage 2 (10.0.0.7:4700): ", how every error of a link begins.
std::string LinkPrefix(const LinkOptions& options);

// A frame that may come next, in our own types: whoever holds one need not look at a header again.
struct PayloadChunk {
  std::optional<MessageHeader> message;  // with the first chunk of a message
  uint64_t message_bytes = 0;            // payload of all chunks together
  uint32_t index = 0, count = 1;         // of the message's chunks
  ByteSpans payload;                     // as in ParsedFrame
  uint32_t payload_crc32c = 0;           // what it should be
  // Both filled in by whoever brought it: what keeps the payload alive, and whether the device of
  // LinkOptions copies from there.
  std::shared_ptr<const void> owner;
  bool is_direct = false;

  bool is_last() const { return index + 1 == count; }
};

class FrameChecker {
 public:
  explicit FrameChecker(const LinkOptions& options) : options_(options) {}

  // FailedPrecondition: another run or generation. InvalidArgument: anything else, naming field,
  // value met and value wanted. After an error the link is lost. One thread at a time.
  absl::StatusOr<PayloadChunk> Check(const ParsedFrame& frame);

 private:
  absl::StatusOr<PayloadChunk> Read(const ParsedFrame& frame);
  absl::Status CheckFence(const FrameHeader& header) const;
  absl::Status CheckKey(const FrameHeader& header) const;
  absl::StatusOr<MessageHeader> ReadFirst(const FrameHeader& header) const;
  absl::Status CheckContinues(const FrameHeader& header) const;

  const LinkOptions options_;
  FrameHeader first_;        // chunk 0 of the message under way
  uint32_t next_chunk_ = 0;  // 0 between messages
};

}  // namespace thinwire
