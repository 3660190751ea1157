// Memory that both ends of a link on one machine have, so that payloads need not go through its
// socket.
//
// It has a few slots for each direction. Who sends copies a payload to a free one and names it in a
// frame; who receives frees it when the payload has been read. The memory has no name in any file
// system: the end that dials makes it, the other opens it by the file descriptor that /proc shows,
// and it is gone with the last of the two processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "wire/frame.h"
#include "wire/message.h"

namespace thinwire {

class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  // For the end that dials, with slots of `slot_bytes`. Pages that are never written take no
  // memory. Errors of the system.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Create(size_t slot_bytes);
  // For the other end: what Create made in the process that wrote this ticket. InvalidArgument or
  // FailedPrecondition for anything else, as where the two see other processes in /proc.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Open(const std::string& ticket);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Printable, a line.
  std::string Ticket() const;

  // Copies the bytes to a slot of this end, sums them on the way and returns the slot's number; none
  // where no slot is free or large enough. One thread at a time.
  std::optional<uint32_t> Put(ByteSpan bytes, uint32_t* crc32c);
  // What the peer has put there. The slot is free again when the last owner goes. The peer can
  // write there even now, so the bytes are to be checked as they are read. InvalidArgument for a
  // slot that there is not, or for more bytes than it has.
  absl::StatusOr<Payload> Take(uint32_t slot, size_t bytes);

 private:
  struct Header;
  enum class End { kDials, kListens };

  SharedMemory(int file, uint8_t* memory, size_t slot_bytes, End end)
      : file_(file), memory_(memory), slot_bytes_(slot_bytes), end_(end) {}

  Header* header() const;
  // Of the slots that the dialling, or the other, end writes.
  uint8_t* Slot(bool dials, uint32_t slot) const;

  const int file_;  // that the peer opens; the other end has none
  uint8_t* const memory_;
  const size_t slot_bytes_;
  const End end_;
};

}  // namespace thinwire
