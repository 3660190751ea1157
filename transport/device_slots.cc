#include "transport/device_slots.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "wire/frame.h"

namespace thinwire {
namespace {

absl::StatusOr<PeerMemory*> PeerMemoryOf(const LinkOptions& options) {
  const bool has_copies = options.device_slots && options.copies != nullptr;
  PeerMemory* const memory = has_copies ? options.copies->peer_memory() : nullptr;
  if (memory == nullptr) return absl::UnimplementedError("no device with memory that peers open");
  return memory;
}

uint8_t* SlotAt(void* memory, uint32_t slot, const SharedMemory& shared) {
  return static_cast<uint8_t*>(memory) + slot * shared.slot_bytes();
}

struct Ticket {
  uint32_t slots = 0;
  PeerMemoryHandle handle;
};

absl::StatusOr<Ticket> ReadTicket(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ' ');
  Ticket ticket;
  const bool is_read = parts.size() == 2 && absl::SimpleAtoi(parts[0], &ticket.slots) &&
                       ticket.slots > 0 && ticket.slots <= SharedMemory::kDeviceSlots &&
                       parts[1].size() == 2 * PeerMemoryHandle::kBytes &&
                       std::all_of(parts[1].begin(), parts[1].end(), absl::ascii_isxdigit);
  if (!is_read) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a peer's ticket for device memory of ", text.size(),
        " bytes, want SLOTS HANDLE with up to ", SharedMemory::kDeviceSlots, " slots"));
  }
  const std::string handle = absl::HexStringToBytes(parts[1]);
  std::memcpy(ticket.handle.bytes, handle.data(), PeerMemoryHandle::kBytes);
  return ticket;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ReceivingDeviceSlots>> ReceivingDeviceSlots::Allocate(
    const LinkOptions& options, std::shared_ptr<SharedMemory> shared) {
  ASSIGN_OR_RETURN(PeerMemory* const device, PeerMemoryOf(options));
  const uint64_t chunks =
      NumChunks(options.max_payload_bytes) * static_cast<uint64_t>(options.queue_capacity);
  const auto slots = static_cast<uint32_t>(std::min<uint64_t>(chunks, SharedMemory::kDeviceSlots));
  std::shared_ptr<ReceivingDeviceSlots> made(
      new ReceivingDeviceSlots(device, std::move(shared), slots));
  RETURN_IF_ERROR(ToStatus(
      device->Allocate(slots * made->shared_->slot_bytes(), &made->memory_, &made->handle_)));
  return made;
}

ReceivingDeviceSlots::~ReceivingDeviceSlots() {
  if (memory_ != nullptr) device_->Free(memory_);
}

std::string ReceivingDeviceSlots::Ticket() const {
  const std::string handle(reinterpret_cast<const char*>(handle_.bytes), PeerMemoryHandle::kBytes);
  return absl::StrCat(slots_, " ", absl::BytesToHexString(handle));
}

absl::StatusOr<Payload> ReceivingDeviceSlots::Take(uint32_t slot, size_t bytes) {
  if (slot >= slots_ || bytes > shared_->slot_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("device memory: ", bytes, " bytes in slot ",
                                                   slot, ", want up to ", shared_->slot_bytes(),
                                                   " in one under ", slots_));
  }
  const auto free = [self = shared_from_this(), slot](const void*) {
    self->shared_->read_device_words()[slot].store(0, std::memory_order_release);
  };
  const uint8_t* const memory = SlotAt(memory_, slot, *shared_);
  return Payload{std::shared_ptr<const void>(memory, free), ByteSpan(memory, bytes)};
}

absl::StatusOr<std::unique_ptr<SendingDeviceSlots>> SendingDeviceSlots::Open(
    const std::string& ticket, const LinkOptions& options, std::shared_ptr<SharedMemory> shared) {
  ASSIGN_OR_RETURN(PeerMemory* const device, PeerMemoryOf(options));
  ASSIGN_OR_RETURN(const auto read, ReadTicket(ticket));
  std::unique_ptr<SendingDeviceSlots> opened(
      new SendingDeviceSlots(device, std::move(shared), read.slots));
  RETURN_IF_ERROR(ToStatus(device->Open(read.handle, &opened->memory_)));
  return opened;
}

SendingDeviceSlots::~SendingDeviceSlots() {
  if (memory_ != nullptr) device_->Close(memory_);
}

// Takes the lowest free slot, without a compare-and-swap as in SharedMemory::Reserve.
std::optional<SendingDeviceSlots::Room> SendingDeviceSlots::Reserve(size_t bytes) {
  if (bytes > shared_->slot_bytes()) return std::nullopt;
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    std::atomic<uint32_t>& taken = shared_->written_device_words()[slot];
    if (taken.load(std::memory_order_acquire) != 0) continue;
    taken.store(1, std::memory_order_release);
    return Room{slot, SlotAt(memory_, slot, *shared_)};
  }
  return std::nullopt;
}

}  // namespace thinwire
