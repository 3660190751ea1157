// One of a backend's three interfaces (the others: nn/ops.h, compress/kernels.h): where tensors
// live. Pure-virtual and plain data only, because backends may be plugins.
//
// A device runs what a thread submits in that order, but perhaps later. What a call gives back in
// host memory is there when it returns. Memory is handed to another thread after Finish, and freed
// by the thread that used it last.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

struct DeviceUsage {
  uint64_t bytes_total = 0;   // of the device
  uint64_t bytes_used = 0;    // by every process
  double busy_fraction = -1;  // of recent time, in [0, 1]; negative: not known
};

// Work that is submitted once and then repeated at the cost of one launch (a CUDA graph), on the
// memory that it was recorded with. One thread at a time.
class Recorder {
 public:
  virtual ~Recorder() = default;

  // What this thread submits until the end of the recording is kept and not run. Memory that it
  // allocates meanwhile belongs to the recorder: it is reused within the recorder's recordings
  // only, in the order in which they were made, and released with the last of recorder and memory.
  // While recording, calls that wait (Finish, copies, kernels with results in host memory) fail.
  virtual Error Start() = 0;
  // *recording: 0 for the first, 1 for the second, ...
  virtual Error Stop(int* recording) = 0;
  // Ends a recording that failed; nothing is kept of it.
  virtual void Abandon() = 0;

  // Submits it once more.
  virtual Error Replay(int recording) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const char* name() const = 0;  // "cpu", "cuda:1"
  // True when host code may read and write device memory in place.
  virtual bool is_host() const = 0;
  // Host memory that this device reads and writes fastest (page-locked); never null, and as long
  // here as the device.
  virtual Device* host() = 0;

  // At least `bytes` bytes, aligned to 64, from a pool that keeps freed blocks for reuse.
  // ResourceExhausted says what was wanted and what is in use. Any thread.
  virtual Error Allocate(size_t bytes, void** memory) = 0;
  // `memory` from Allocate of this device. Any thread.
  virtual void Free(void* memory) = 0;
  virtual size_t bytes_in_use() const = 0;
  // Gives back what the pool, and that of host(), keeps and nobody uses. Any thread.
  virtual void Trim() = 0;

  // Copies finish before they return.
  virtual Error CopyFromHost(void* device, const void* host, size_t bytes) = 0;
  virtual Error CopyToHost(void* host, const void* device, size_t bytes) = 0;

  // Waits until all that this thread submitted is done, and reports what of it failed.
  virtual Error Finish() = 0;

  // The caller deletes *recorder. Unimplemented where nothing is gained by it.
  virtual Error NewRecorder(Recorder** recorder) = 0;

  virtual Error Usage(DeviceUsage* usage) = 0;
};

}  // namespace thinwire
