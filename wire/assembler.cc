#include "wire/assembler.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "tensor/cpu/device.h"

namespace thinwire {
namespace {

static_assert(kMaxChunkBytes <= CopyQueue::kMostBytes);

// The device copies one chunk while the next one comes.
constexpr size_t kCopiesUnderWay = 1;

// Copies the chunk's payload and returns the checksum of the copy. The source may change meanwhile,
// as the peer can write there.
uint32_t SumAndCopy(const PayloadChunk& chunk, uint8_t* to) {
  uint32_t crc = 0;
  for (const ByteSpan part : chunk.payload) {
    crc = ExtendCrc32cAndCopy(crc, to, part.data(), part.size());
    to += part.size();
  }
  return crc;
}

// Returns whether the device copies the chunk itself. Locks its pages if it has to, which is never
// done for what the host copies: it takes as long as copying them a few times.
bool IsCopiedByDevice(const PayloadChunk& chunk) {
  return chunk.place == PayloadPlace::kDevice ||
         (chunk.place == PayloadPlace::kLocked && chunk.lock_pages());
}

}  // namespace

// An exact payload becomes a tensor where it lies. A codec's is decoded from there, never from a
// slot: the peer could still change what was checked.
bool Assembler::GathersOnDevice(const PayloadChunk& first) const {
  if (options_.copies == nullptr) return false;
  if (first.message->codec.is_exact()) return true;
  return first.message_bytes >= kLeastCodedOnDevice && options_.decodes_on_device &&
         options_.decodes_on_device(first.message->codec);
}

absl::Status Assembler::Begin(const PayloadChunk& first) {
  message_ = Message{*first.message, {}};
  filled_ = 0;
  buffer_ = nullptr;
  if (first.message_bytes == 0) return absl::OkStatus();
  const bool on_device = GathersOnDevice(first) && IsCopiedByDevice(first);
  Device* const host = options_.host != nullptr ? options_.host : CpuDevice();
  ASSIGN_OR_RETURN(buffer_,
                   Buffer::Allocate(on_device ? options_.device : host, first.message_bytes));
  if (on_device) message_.payload.device = options_.device;
  return absl::OkStatus();
}

absl::Status Assembler::CheckSum(const PayloadChunk& chunk, uint32_t crc) const {
  if (crc == chunk.payload_crc32c) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "%s: %s: payload_crc32c of chunk %d is %#010x, the payload's bytes, which came by %s, give "
      "%#010x",
      LinkAndPeer(options_), message_.key.ToString(), chunk.index, chunk.payload_crc32c,
      chunk.came_by, crc));
}

absl::Status Assembler::AwaitAllBut(size_t copies) {
  while (copied_.size() > copies) {
    const PayloadChunk chunk = std::move(copied_.front());
    copied_.pop_front();
    uint32_t crc = 0;
    RETURN_IF_ERROR(ToStatus(queue_->Await(&crc)));
    RETURN_IF_ERROR(CheckSum(chunk, crc));
  }
  return absl::OkStatus();
}

absl::Status Assembler::Submit(PayloadChunk chunk, uint8_t* to) {
  if (queue_ == nullptr) {
    CopyQueue* made = nullptr;
    RETURN_IF_ERROR(ToStatus(options_.copies->NewQueue(&made)));
    queue_.reset(made);
  }
  const ByteSpan from = chunk.payload[0];
  RETURN_IF_ERROR(ToStatus(chunk.place == PayloadPlace::kDevice
                               ? queue_->SubmitFromShared(to, from.data(), from.size())
                               : queue_->SubmitFromHost(to, from.data(), from.size())));
  copied_.push_back(std::move(chunk));
  return AwaitAllBut(kCopiesUnderWay);
}

// Copies a chunk that came through the socket, for a message that is gathered on a device.
absl::Status Assembler::CopyByHost(const PayloadChunk& chunk, uint8_t* to) {
  const size_t bytes = TotalBytes(chunk.payload);
  ASSIGN_OR_RETURN(const auto copy, Buffer::Allocate(options_.device->host(), bytes));
  RETURN_IF_ERROR(CheckSum(chunk, SumAndCopy(chunk, static_cast<uint8_t*>(copy->data()))));
  return ToStatus(options_.device->CopyFromHost(to, copy->data(), bytes));
}

// Copies a chunk of a message that is gathered on the host. What comes from a device is summed
// after it has come, too.
absl::Status Assembler::GatherOnHost(const PayloadChunk& chunk, uint8_t* to) {
  if (chunk.place != PayloadPlace::kDevice) return CheckSum(chunk, SumAndCopy(chunk, to));
  const ByteSpan from = chunk.payload[0];
  RETURN_IF_ERROR(ToStatus(options_.device->CopyToHost(to, from.data(), from.size())));
  return CheckSum(chunk, Crc32c(to, from.size()));
}

absl::Status Assembler::Gather(PayloadChunk chunk) {
  if (buffer_ == nullptr) return CheckSum(chunk, /*crc=*/0);
  uint8_t* const to = static_cast<uint8_t*>(buffer_->data()) + filled_;
  filled_ += TotalBytes(chunk.payload);
  if (message_.payload.device == nullptr) return GatherOnHost(chunk, to);
  return IsCopiedByDevice(chunk) ? Submit(std::move(chunk), to) : CopyByHost(chunk, to);
}

absl::StatusOr<std::optional<Message>> Assembler::Add(PayloadChunk chunk) {
  if (chunk.message) RETURN_IF_ERROR(Begin(chunk));
  const uint32_t chunks = chunk.is_last() ? 0 : chunk.index + 1;
  RETURN_IF_ERROR(Gather(std::move(chunk)));
  chunks_ = chunks;
  if (chunks_ > 0) return std::nullopt;
  RETURN_IF_ERROR(AwaitAllBut(0));
  if (buffer_ != nullptr) {
    message_.payload.bytes = ByteSpan(static_cast<const uint8_t*>(buffer_->data()), filled_);
    message_.payload.owner = std::move(buffer_);
  }
  return std::move(message_);
}

}  // namespace thinwire
