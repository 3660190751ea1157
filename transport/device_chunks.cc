#include "transport/device_chunks.h"

#include "base/status.h"
#include "tensor/tensor.h"
#include "wire/frame.h"

namespace thinwire {
namespace {

// Copies under way: the one that is awaited, and the next.
constexpr size_t kUnderWay = 2;

}  // namespace

DeviceChunks::~DeviceChunks() {
  for (; !submitted_.empty(); submitted_.pop_front()) {
    (void)queue_->Await(&submitted_.front().crc32c);
  }
}

// Returns where the chunk goes, and sets all of *chunk but its checksum.
absl::StatusOr<uint8_t*> DeviceChunks::PlaceFor(size_t bytes, Chunk* chunk) const {
  if (const std::optional<Room> room = find_room_(bytes)) {
    chunk->place = room->place;
    chunk->slot = room->slot;
    return room->memory;
  }
  ASSIGN_OR_RETURN(auto buffer, Buffer::Allocate(host_, bytes));
  auto* const memory = static_cast<uint8_t*>(buffer->data());
  chunk->on_host = {std::move(buffer), {memory, bytes}};
  return memory;
}

absl::Status DeviceChunks::SubmitNext() {
  const ByteSpan from = payload_.bytes.subspan(submitted_bytes_, kMaxChunkBytes);
  Chunk chunk;
  ASSIGN_OR_RETURN(uint8_t* const to, PlaceFor(from.size(), &chunk));
  RETURN_IF_ERROR(ToStatus(chunk.place == PayloadPlace::kDevice
                               ? queue_->SubmitToShared(to, from.data(), from.size())
                               : queue_->SubmitToHost(to, from.data(), from.size())));
  submitted_bytes_ += from.size();
  submitted_.push_back(std::move(chunk));
  return absl::OkStatus();
}

absl::StatusOr<DeviceChunks::Chunk> DeviceChunks::Next() {
  const size_t bytes = payload_.bytes.size();
  while (submitted_.size() < kUnderWay && submitted_bytes_ < bytes) RETURN_IF_ERROR(SubmitNext());
  Chunk chunk = std::move(submitted_.front());
  submitted_.pop_front();
  RETURN_IF_ERROR(ToStatus(queue_->Await(&chunk.crc32c)));
  if (submitted_.empty() && submitted_bytes_ == bytes) payload_.owner = nullptr;
  return chunk;
}

}  // namespace thinwire
