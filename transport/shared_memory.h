// Memory that both ends of a link on one machine have, so that payloads need not go through its
// socket.
//
// It has a few slots for each direction. Who sends reserves a free one, copies a payload there and
// names it in a frame; who receives frees it when the payload has been read. A device that copies
// by itself gets the pages of a slot locked when it is first used. The memory has no name in any
// file system: the end that dials makes it, the other opens it by the file descriptor that /proc
// shows, and it is gone with the last of the two processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "tensor/direct_copies.h"
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

  // From now on a slot's pages are locked for `copies`, which outlives this. If they cannot be,
  // `on_note` is called with why, once, and none is any more. Before anything else is called.
  void LockFor(DirectCopies* copies, std::function<void(const std::string&)> on_note);

  // The number of a free slot of this end, which then is not free; none where no slot is large
  // enough, or none is free by the deadline or when `is_over`, which is asked now and then. One
  // thread at a time, these four.
  std::optional<uint32_t> Reserve(size_t bytes, SteadyTime deadline,
                                  const std::function<bool()>& is_over);
  // Copies the bytes to a reserved slot and returns their CRC-32C.
  uint32_t Put(uint32_t slot, ByteSpan bytes);
  // The memory of a reserved slot, for a device; null where its pages cannot be locked.
  uint8_t* Locked(uint32_t slot);
  // Gives up a reserved slot that the peer has not been told of.
  void Release(uint32_t slot);

  // Bytes that the peer has put there, and whether their pages are locked. The slot is free again
  // when the last owner goes. The peer can write there even now, so the bytes are to be checked as
  // they are read. InvalidArgument for a slot that there is not, or for more bytes than it has. One
  // thread at a time.
  struct Taken {
    Payload payload;
    bool is_locked = false;
  };
  absl::StatusOr<Taken> Take(uint32_t slot, size_t bytes);

 private:
  // In each direction: of the largest exact messages some eight, more than schedules let stages be
  // ahead. What is never written takes no memory.
  static constexpr uint32_t kSlots = 32;
  struct Header;
  enum class End { kDials, kListens };

  SharedMemory(int file, uint8_t* memory, size_t slot_bytes, End end)
      : file_(file), memory_(memory), slot_bytes_(slot_bytes), end_(end) {}

  bool dials() const { return end_ == End::kDials; }
  Header* header() const;
  bool Lock(bool dials, uint32_t slot);
  // Of the slots that the dialling, or the other, end writes.
  uint8_t* Slot(bool dials, uint32_t slot) const;

  const int file_;  // that the peer opens; the other end has none
  uint8_t* const memory_;
  const size_t slot_bytes_;
  const End end_;
  DirectCopies* copies_ = nullptr;
  std::function<void(const std::string&)> on_note_;
  std::atomic<bool> may_lock_{false};  // nothing was refused
  // By direction, as Header::taken: of the thread that reserves, and of the one that takes.
  bool locked_[2][kSlots] = {};
};

}  // namespace thinwire
