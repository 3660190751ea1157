// Copies a message's payload out of a device's memory in chunks: to memory that both ends have, or
// to the host's. The next chunk is copied while the sender sends the current one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/direct_copies.h"
#include "wire/frame_checker.h"
#include "wire/message.h"

namespace thinwire {

class DeviceChunks {
 public:
  // A chunk after its copy: in a slot, or in host memory if its place is kHost.
  struct Chunk {
    PayloadPlace place = PayloadPlace::kHost;
    uint32_t slot = 0;
    Payload on_host;
    uint32_t crc32c = 0;
  };
  // Finds a free slot for `bytes` bytes: pages that are locked, or memory of the peer's device.
  // Without one the chunk is copied to host memory.
  struct Room {
    PayloadPlace place = PayloadPlace::kLocked;
    uint32_t slot = 0;
    uint8_t* memory = nullptr;
  };
  using FindRoom = std::function<std::optional<Room>(size_t bytes)>;

  // `payload` is in a device's memory and not empty. `queue` belongs to that device and to nobody
  // else; `host` is the device's host().
  DeviceChunks(Payload payload, CopyQueue* queue, Device* host, FindRoom find_room)
      : payload_(std::move(payload)),
        queue_(queue),
        host_(host),
        find_room_(std::move(find_room)) {}
  ~DeviceChunks();
  DeviceChunks(const DeviceChunks&) = delete;
  DeviceChunks& operator=(const DeviceChunks&) = delete;

  // Returns the next chunk. The last one also releases the payload's owner. After an error, which
  // is the device's, Next must not be called again.
  absl::StatusOr<Chunk> Next();

 private:
  absl::Status SubmitNext();
  absl::StatusOr<uint8_t*> PlaceFor(size_t bytes, Chunk* chunk) const;

  Payload payload_;
  size_t submitted_bytes_ = 0;
  CopyQueue* const queue_;
  Device* const host_;
  const FindRoom find_room_;
  std::deque<Chunk> submitted_;
};

}  // namespace thinwire
