// Memory shared by both ends of a link on one machine, so that payloads need not go through its
// socket.
//
// It has kSlots slots for each direction. The sender reserves a free slot, copies a payload there
// and names the slot in a frame. The receiver frees it when the payload has been read. A device
// that copies by itself gets a slot's pages locked when it first uses the slot. The memory has no
// name in any file system. The dialling end creates it, and the other end opens it by the file
// descriptor that /proc shows. It is gone with the last of the two processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/owned_descriptor.h"
#include "base/steady_time.h"
#include "tensor/direct_copies.h"
#include "wire/frame.h"
#include "wire/message.h"

namespace thinwire {

class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  // Makes the memory at the dialling end, with slots of `slot_bytes`. Pages that are never written
  // take no memory. Returns errors of the system.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Create(size_t slot_bytes);
  // Opens, at the other end, what Create made in the process that wrote `ticket`. InvalidArgument
  // or FailedPrecondition for anything else, also if the two ends see different processes in /proc.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Open(const std::string& ticket);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Returns a printable line that Open understands.
  std::string Ticket() const;

  // Locks the pages of slots for `copies` from now on; `copies` outlives this. If a lock fails,
  // `on_note` is called once with the reason and no more pages are locked. Called before anything
  // else.
  void LockFor(DirectCopies* copies, std::function<void(const std::string&)> on_note);

  // Reserves a free slot of this end and returns its number. Waits until `deadline`, or until
  // `is_over`, which is called now and then, returns true. Returns nothing if no slot got free or
  // none is large enough. Reserve, Put, Locked and Release are called by one thread at a time.
  std::optional<uint32_t> Reserve(size_t bytes, SteadyTime deadline,
                                  const std::function<bool()>& is_over);
  // Copies `bytes` to a reserved slot and returns their CRC-32C.
  uint32_t Put(uint32_t slot, ByteSpan bytes);
  // Returns the memory of a reserved slot for a device; null if its pages cannot be locked.
  uint8_t* Locked(uint32_t slot);
  // Frees a reserved slot that the peer has not been told of.
  void Release(uint32_t slot);

  // Words for slots in memory of the receiver's device (device_slots.h): 1 while a slot waits for
  // its reader, as for the slots here. Those of what this end writes, and of what it reads.
  static constexpr uint32_t kDeviceSlots = 16;
  std::atomic<uint32_t>* written_device_words() const { return device_words(dials()); }
  std::atomic<uint32_t>* read_device_words() const { return device_words(!dials()); }
  size_t slot_bytes() const { return slot_bytes_; }

  // Returns bytes that the peer has put into a slot, which becomes free when the last owner of the
  // payload goes. The peer can still write there, so the bytes must be checked as they are read.
  // InvalidArgument if the slot does not exist or has fewer bytes. One thread at a time.
  absl::StatusOr<Payload> Take(uint32_t slot, size_t bytes);
  // Locks the pages of a slot that Take has found, for a device; false if that cannot be. One
  // thread at a time, which may be another.
  bool LockTaken(uint32_t slot) { return Lock(!dials(), slot); }

 private:
  // Slots in each direction. The largest exact messages take some eight, more than a schedule lets
  // stages be ahead. Pages never written take no memory.
  static constexpr uint32_t kSlots = 32;
  struct Header;
  enum class End { kDials, kListens };

  SharedMemory(OwnedDescriptor file, uint8_t* memory, size_t slot_bytes, End end)
      : file_(std::move(file)), memory_(memory), slot_bytes_(slot_bytes), end_(end) {}

  bool dials() const { return end_ == End::kDials; }
  Header* header() const;
  std::atomic<uint32_t>* device_words(bool dials) const;
  bool Lock(bool dials, uint32_t slot);
  // Returns a slot that the dialling end writes, or that the other end writes.
  uint8_t* Slot(bool dials, uint32_t slot) const;

  const OwnedDescriptor file_;  // opened by the peer; none at the other end
  uint8_t* const memory_;
  const size_t slot_bytes_;
  const End end_;
  DirectCopies* copies_ = nullptr;
  std::function<void(const std::string&)> on_note_;
  std::atomic<bool> may_lock_{false};  // no lock has failed yet
  // By direction, as Header::taken. One row belongs to the reserving thread, the other to that of
  // LockTaken.
  bool locked_[2][kSlots] = {};
};

}  // namespace thinwire
