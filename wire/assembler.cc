#include "wire/assembler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "tensor/cpu/device.h"

namespace thinwire {
absl::Status Assembler::Begin(const PayloadChunk& first) {
  message_ = Message{*first.message, {}};
  filled_ = 0;
  buffer_ = nullptr;
  if (first.message_bytes == 0) return absl::OkStatus();
  Device* const host = options_.host != nullptr ? options_.host : CpuDevice();
  ASSIGN_OR_RETURN(buffer_, Buffer::Allocate(host, first.message_bytes));
  return absl::OkStatus();
}

absl::Status Assembler::Append(const PayloadChunk& chunk) {
  uint32_t crc = 0;
  for (ByteSpan part : chunk.payload) {
    crc = ExtendCrc32cAndCopy(crc, static_cast<uint8_t*>(buffer_->data()) + filled_, part.data(),
                              part.size());
    filled_ += part.size();
  }
  if (crc == chunk.payload_crc32c) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "%s%s: payload_crc32c of chunk %d is %#010x, the payload's bytes give %#010x",
      LinkPrefix(options_), message_.key.ToString(), chunk.index, chunk.payload_crc32c, crc));
}

absl::StatusOr<std::optional<Message>> Assembler::Add(const PayloadChunk& chunk) {
  if (chunk.message) RETURN_IF_ERROR(Begin(chunk));
  RETURN_IF_ERROR(Append(chunk));
  chunks_ = chunk.is_last() ? 0 : chunk.index + 1;
  if (!chunk.is_last()) return std::nullopt;
  if (buffer_ != nullptr) {
    message_.payload.bytes = ByteSpan(static_cast<const uint8_t*>(buffer_->data()), filled_);
    message_.payload.owner = std::move(buffer_);
  }
  return std::move(message_);
}

}  // namespace thinwire
