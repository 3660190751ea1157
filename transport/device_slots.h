// Slots in device memory that the receiver allocates and the sender opens, for payloads that go
// from one GPU's memory to the same or to another without the host.
//
// They are used as those of shared_memory.h are, in whose first page their words are. A sender
// never waits for one: without a free slot a payload goes through the host's memory. The host reads
// nothing of a payload here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tensor/direct_copies.h"
#include "transport/shared_memory.h"
#include "wire/link.h"
#include "wire/message.h"

namespace thinwire {

// Slots in which one end receives.
class ReceivingDeviceSlots : public std::enable_shared_from_this<ReceivingDeviceSlots> {
 public:
  // Allocates slots of the device of `options` for as many messages as may wait, but for 64 MiB at
  // most. Unimplemented if `options` wants none, or there is no device with such memory; otherwise
  // its errors.
  static absl::StatusOr<std::shared_ptr<ReceivingDeviceSlots>> Allocate(
      const LinkOptions& options, std::shared_ptr<SharedMemory> shared);
  ~ReceivingDeviceSlots();
  ReceivingDeviceSlots(const ReceivingDeviceSlots&) = delete;
  ReceivingDeviceSlots& operator=(const ReceivingDeviceSlots&) = delete;

  // Returns a printable line by which the peer opens the slots.
  std::string Ticket() const;

  // Returns bytes that the peer has put into a slot, in device memory. The slot becomes free when
  // the last owner of the payload goes. The peer can still write there, so what is checked must be
  // a copy. InvalidArgument if the slot does not exist or has fewer bytes. One thread at a time.
  absl::StatusOr<Payload> Take(uint32_t slot, size_t bytes);

 private:
  ReceivingDeviceSlots(PeerMemory* device, std::shared_ptr<SharedMemory> shared, uint32_t slots)
      : device_(device), shared_(std::move(shared)), slots_(slots) {}

  PeerMemory* const device_;
  const std::shared_ptr<SharedMemory> shared_;
  const uint32_t slots_;
  void* memory_ = nullptr;
  PeerMemoryHandle handle_;
};

// The peer's slots, into which this end sends.
class SendingDeviceSlots {
 public:
  // Opens what the peer's Ticket() names. InvalidArgument for anything else, Unimplemented if
  // `options` wants none, or there is no device that opens other's memory; otherwise its errors.
  static absl::StatusOr<std::unique_ptr<SendingDeviceSlots>> Open(
      const std::string& ticket, const LinkOptions& options, std::shared_ptr<SharedMemory> shared);
  ~SendingDeviceSlots();
  SendingDeviceSlots(const SendingDeviceSlots&) = delete;
  SendingDeviceSlots& operator=(const SendingDeviceSlots&) = delete;

  // A reserved slot and its memory.
  struct Room {
    uint32_t slot = 0;
    uint8_t* memory = nullptr;
  };
  // Reserves a slot; nothing if none is free now or large enough. One thread at a time.
  std::optional<Room> Reserve(size_t bytes);

 private:
  SendingDeviceSlots(PeerMemory* device, std::shared_ptr<SharedMemory> shared, uint32_t slots)
      : device_(device), shared_(std::move(shared)), slots_(slots) {}

  PeerMemory* const device_;
  const std::shared_ptr<SharedMemory> shared_;
  const uint32_t slots_;
  void* memory_ = nullptr;
};

}  // namespace thinwire
