// The chunks of a message whose payload stands in a device's memory, as the device copies them out:
// to memory that the peer has, too, or to the host's. While the sender sends one, the next is
// copied.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/direct_copies.h"
#include "transport/shared_memory.h"
#include "wire/message.h"

namespace thinwire {

class DeviceChunks {
 public:
  // Where a chunk is now: in a slot, or in memory of the host.
  struct Chunk {
    std::optional<uint32_t> slot;
    Payload on_host;
    uint32_t crc32c = 0;
  };
  // Gives a slot for so many bytes whose pages are locked; none: the chunk goes to the host's
  // memory.
  struct Room {
    uint32_t slot = 0;
    uint8_t* memory = nullptr;
  };
  using FindRoom = std::function<std::optional<Room>(size_t bytes)>;

  // `payload` stands in a device's memory and is not empty; `queue`, which nobody else uses, is
  // that device's, and `host` its host().
  DeviceChunks(Payload payload, CopyQueue* queue, Device* host, FindRoom find_room)
      : payload_(std::move(payload)),
        queue_(queue),
        host_(host),
        find_room_(std::move(find_room)) {}
  ~DeviceChunks();
  DeviceChunks(const DeviceChunks&) = delete;
  DeviceChunks& operator=(const DeviceChunks&) = delete;

  // The next one. With the last the payload's owner has gone. The device's errors, after which
  // there is no next one.
  absl::StatusOr<Chunk> Next();

 private:
  absl::Status SubmitNext();

  Payload payload_;
  size_t submitted_bytes_ = 0;
  CopyQueue* const queue_;
  Device* const host_;
  const FindRoom find_room_;
  std::deque<Chunk> submitted_;
};

}  // namespace thinwire
