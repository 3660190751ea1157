// An interface that a device may offer besides its own (device.h): copies between its memory and
// memory that other processes have too, which it makes, and sums, without the host's help. A
// backend's interface like that: pure-virtual, plain data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

// Copies one after the other. Any thread, one at a time; nobody changes what a copy reads, or reads
// what it writes, from Submit until its Await has returned. Its end waits for all copies.
class CopyQueue {
 public:
  static constexpr size_t kMostBytes = 4 << 20;
  virtual ~CopyQueue() = default;

  // Starts a copy of 1 to kMostBytes bytes from or to `own`, memory of the device that is aligned
  // to 16. `host` is host memory; only that of LockPages and of the device's host() is copied
  // without a detour.
  virtual Error SubmitToHost(void* host, const void* own, size_t bytes) = 0;
  virtual Error SubmitFromHost(void* own, const void* host, size_t bytes) = 0;

  // Waits for the copy that was submitted first of those not awaited, of which there is one.
  // *crc32c is that of the bytes in `own`, once they are there.
  virtual Error Await(uint32_t* crc32c) = 0;
};

// Any thread.
class DirectCopies {
 public:
  virtual ~DirectCopies() = default;

  // Locks whole pages of host memory in place, which another process may share, until UnlockPages.
  virtual Error LockPages(void* memory, size_t bytes) = 0;
  virtual void UnlockPages(void* memory) = 0;

  // The caller deletes *queue.
  virtual Error NewQueue(CopyQueue** queue) = 0;
};

}  // namespace thinwire
