// Gathers the chunks of a message into one buffer and verifies their checksums: the one copy on
// the way in.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"
#include "wire/frame_checker.h"
#include "wire/link.h"
#include "wire/message.h"

namespace thinwire {

class Assembler {
 public:
  explicit Assembler(const LinkOptions& options) : options_(options) {}

  // Takes the chunks in the order in which the link's FrameChecker gave them. Returns the message
  // with its last one; its payload stands in one buffer of options.host, aligned to 64. DataLoss: a
  // payload's checksum differs; ResourceExhausted: no memory. After an error the link is lost.
  absl::StatusOr<std::optional<Message>> Add(const PayloadChunk& chunk);

  // How many chunks of the message under way have been added.
  uint32_t chunks() const { return chunks_; }

 private:
  absl::Status Begin(const PayloadChunk& first);
  absl::Status Append(const PayloadChunk& chunk);

  const LinkOptions options_;
  Message message_;
  std::shared_ptr<Buffer> buffer_;
  size_t filled_ = 0;  // bytes of buffer_
  uint32_t chunks_ = 0;
};

}  // namespace thinwire
