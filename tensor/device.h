// Devices, where tensors live: one of a backend's three interfaces (the others are nn/ops.h and
// compress/kernels.h). It has pure-virtual functions and plain data only, because backends may be
// plugins.
//
// A device runs what a thread submits in order, but perhaps later. Results in host memory are there
// when the call returns. Memory may be handed to another thread only after Finish. The thread that
// used it last must free it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

struct DeviceUsage {
  uint64_t bytes_total = 0;   // of the device
  uint64_t bytes_used = 0;    // used by all processes
  double busy_fraction = -1;  // part of recent time, in [0, 1]; negative: not known
};

// Records work once and repeats it at the cost of one launch (a CUDA graph), on the memory that it
// was recorded with. Not thread-safe.
class Recorder {
 public:
  virtual ~Recorder() = default;

  // Starts a recording: what this thread submits until Stop is kept and not run. Memory that it
  // allocates meanwhile belongs to the recorder. That memory is reused only by later recordings of
  // this recorder, in the order in which they were made. It is released when the recorder and all
  // memory from it are gone. Calls that wait (Finish, copies, kernels with results in host memory)
  // fail during a recording.
  virtual Error Start() = 0;
  // Ends the recording and sets *recording to its number: 0 for the first, 1 for the second, ...
  virtual Error Stop(int* recording) = 0;
  // Ends a recording that failed; nothing of it is kept.
  virtual void Abandon() = 0;

  // Submits the recorded work once more.
  virtual Error Replay(int recording) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const char* name() const = 0;  // "cpu", "cuda:1"
  // Returns whether host code may read and write device memory in place.
  virtual bool is_host() const = 0;
  // Returns the host memory that this device reads and writes fastest (page-locked). It is never
  // null and lives as long as the device.
  virtual Device* host() = 0;

  // Allocates at least `bytes` bytes, aligned to 64, from a pool that keeps freed blocks for reuse.
  // ResourceExhausted says what was wanted and what is in use. Any thread.
  virtual Error Allocate(size_t bytes, void** memory) = 0;
  // Frees `memory`, which is from Allocate of this device. Any thread.
  virtual void Free(void* memory) = 0;
  virtual size_t bytes_in_use() const = 0;
  // Releases the memory that the pool, and that of host(), keeps unused. Any thread.
  virtual void Trim() = 0;

  // Copy `bytes` bytes; return when the copy is done.
  virtual Error CopyFromHost(void* device, const void* host, size_t bytes) = 0;
  virtual Error CopyToHost(void* host, const void* device, size_t bytes) = 0;

  // Waits until all that this thread submitted is done; returns the first failure of it.
  virtual Error Finish() = 0;

  // Makes a recorder, which the caller deletes. Unimplemented where recording gains nothing.
  virtual Error NewRecorder(Recorder** recorder) = 0;

  virtual Error Usage(DeviceUsage* usage) = 0;
};

}  // namespace thinwire
