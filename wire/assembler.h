// Gathers the chunks of a message into one buffer and verifies their checksums. This is the only
// copy of received bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "tensor/direct_copies.h"
#include "tensor/tensor.h"
#include "wire/frame_checker.h"
#include "wire/link.h"
#include "wire/message.h"

namespace thinwire {

class Assembler {
 public:
  explicit Assembler(const LinkOptions& options) : options_(options) {}

  // Takes the next chunk, in the order in which the link's FrameChecker gave them. Returns the
  // message with its last chunk. Its payload is one buffer of options.host, aligned to 64 bytes. If
  // the device copies its first chunk, and `options` have such messages gathered there, the buffer
  // is of options.device instead.
  // DataLoss if a payload's checksum differs, ResourceExhausted if there is no memory, or an error
  // of the device. After an error the link is lost.
  absl::StatusOr<std::optional<Message>> Add(PayloadChunk chunk);

  // Returns the number of chunks of the current message that have been added.
  uint32_t chunks() const { return chunks_; }

 private:
  bool GathersOnDevice(const PayloadChunk& first) const;
  absl::Status Begin(const PayloadChunk& first);
  absl::Status Gather(PayloadChunk chunk);
  absl::Status Submit(PayloadChunk chunk, uint8_t* to);
  absl::Status GatherOnHost(const PayloadChunk& chunk, uint8_t* to);
  absl::Status CopyByHost(const PayloadChunk& chunk, uint8_t* to);
  absl::Status AwaitAllBut(size_t copies);
  absl::Status CheckSum(const PayloadChunk& chunk, uint32_t crc) const;

  const LinkOptions options_;
  Message message_;
  std::shared_ptr<Buffer> buffer_;
  size_t filled_ = 0;  // bytes of buffer_ that are set aside for chunks so far
  uint32_t chunks_ = 0;
  std::deque<PayloadChunk> copied_;   // submitted to the queue, not awaited
  std::unique_ptr<CopyQueue> queue_;  // made on first use; its destructor waits for its copies
};

}  // namespace thinwire
