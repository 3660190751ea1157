#include "wire/assembler.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "tensor/cpu/device.h"
#include "wire/codec_parameters.h"
#include "wire/frame_checker.h"

namespace thinwire {
namespace {

MessageKey KeyOf(const FrameHeader& header) {
  MessageKey key;
  key.phase = header.phase();
  key.direction = header.direction();
  key.cut = header.cut();
  key.epoch = header.epoch();
  key.step = header.step();
  key.microbatch = header.microbatch();
  return key;
}

}  // namespace

absl::Status Assembler::Begin(const FrameHeader& header) {
  message_ = Message();
  message_.key = KeyOf(header);
  message_.dtype = static_cast<DType>(header.dtype());
  for (uint32_t extent : header.shape()) message_.shape.Append(extent);
  ASSIGN_OR_RETURN(message_.codec, FromParameters(header.codec()));
  message_.sample_digest = header.sample_digest();
  message_.first_visit = header.first_visit();
  if (header.has_state_digest()) message_.state_digest = header.state_digest();
  filled_ = 0;
  buffer_ = nullptr;
  if (header.payload_bytes() == 0) return absl::OkStatus();
  Device* const host = options_.host != nullptr ? options_.host : CpuDevice();
  ASSIGN_OR_RETURN(buffer_, Buffer::Allocate(host, header.payload_bytes()));
  return absl::OkStatus();
}

absl::Status Assembler::Append(const ParsedFrame& frame) {
  uint32_t crc = 0;
  for (ByteSpan part : frame.payload) {
    crc = ExtendCrc32cAndCopy(crc, static_cast<uint8_t*>(buffer_->data()) + filled_, part.data(),
                              part.size());
    filled_ += part.size();
  }
  if (crc == frame.header.payload_crc32c()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrFormat("%s%s: payload_crc32c of chunk %d is %#010x, the payload's bytes give %#010x",
                      LinkPrefix(options_), message_.key.ToString(), frame.header.chunk(),
                      frame.header.payload_crc32c(), crc));
}

absl::StatusOr<std::optional<Message>> Assembler::Add(const ParsedFrame& frame) {
  if (chunks_ == 0) RETURN_IF_ERROR(Begin(frame.header));
  RETURN_IF_ERROR(Append(frame));
  if (++chunks_ < frame.header.chunks()) return std::nullopt;
  chunks_ = 0;
  if (buffer_ != nullptr) {
    message_.payload.bytes = ByteSpan(static_cast<const uint8_t*>(buffer_->data()), filled_);
    message_.payload.owner = std::move(buffer_);
  }
  return std::move(message_);
}

}  // namespace thinwire
