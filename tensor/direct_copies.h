// Copies between a device's memory and memory shared with other processes. The device copies and
// computes checksums without the host's help. A device may offer this besides its interface of
// device.h; it, too, has pure-virtual functions and plain data only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

// Does one copy after the other. Any thread, one at a time. From Submit until Await has returned,
// nobody may change what a copy reads or read what it writes. The destructor waits for all copies.
class CopyQueue {
 public:
  static constexpr size_t kMostBytes = 4 << 20;
  virtual ~CopyQueue() = default;

  // Start a copy of 1 to kMostBytes bytes. `own` is device memory aligned to 16; `host` is host
  // memory. Only memory of LockPages and of the device's host() is copied without a detour.
  virtual Error SubmitToHost(void* host, const void* own, size_t bytes) = 0;
  virtual Error SubmitFromHost(void* own, const void* host, size_t bytes) = 0;

  // Do the same with `shared`, which is memory of PeerMemory, in place of the host's.
  virtual Error SubmitToShared(void* shared, const void* own, size_t bytes) = 0;
  virtual Error SubmitFromShared(void* own, const void* shared, size_t bytes) = 0;

  // Waits for the oldest copy that was not awaited; there must be one. Sets *crc32c to the checksum
  // of the bytes in `own` after the copy.
  virtual Error Await(uint32_t* crc32c) = 0;
};

// Name of device memory, by which other processes of the machine open it.
struct PeerMemoryHandle {
  static constexpr size_t kBytes = 64;

  uint8_t bytes[kBytes] = {};
};

// Offers device memory that two processes have. The host can read none of it. Any thread.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;

  // Allocates at least `bytes` bytes of this device, aligned to 256. What is in them is undefined.
  virtual Error Allocate(size_t bytes, void** memory, PeerMemoryHandle* handle) = 0;
  // Takes memory of Allocate back, which nobody here uses any more. A peer may still have it open,
  // so it never becomes memory of tensors: it is kept for an Allocate some seconds later.
  virtual void Free(void* memory) = 0;

  // Opens what Allocate of another process gave, on this device or on one that it reaches. Every
  // Open has its Close, before which no copy may be under way.
  virtual Error Open(const PeerMemoryHandle& handle, void** memory) = 0;
  virtual void Close(void* memory) = 0;
};

// Offers the copies of one device. Any thread.
class DirectCopies {
 public:
  virtual ~DirectCopies() = default;

  // Locks whole pages of host memory, which another process may share, in place until UnlockPages.
  virtual Error LockPages(void* memory, size_t bytes) = 0;
  virtual void UnlockPages(void* memory) = 0;

  // Makes a queue, which the caller deletes.
  virtual Error NewQueue(CopyQueue** queue) = 0;

  // Returns memory that lives as long as this; null where a device has none such.
  virtual PeerMemory* peer_memory() = 0;
};

}  // namespace thinwire
