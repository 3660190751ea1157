// Recording of what a device did and when. A device may offer this besides its interface of
// device.h; it, too, has pure-virtual functions and plain data only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

// A kernel, a copy or a clearing of memory on a device.
struct DeviceActivity {
  enum class Kind : uint8_t { kKernel, kCopyFromHost, kCopyToHost, kCopy, kClear };

  Kind kind = Kind::kKernel;
  uint32_t stream = 0;         // number of the queue in which it was submitted
  int64_t begin = 0, end = 0;  // nanoseconds of the monotonic clock (base/steady_time.h)
  uint64_t amount = 0;         // bytes copied or cleared; blocks of a kernel
  char name[96] = {};          // name of a kernel, shortened for people
};

// Records what the process submits to its devices. One recorder of a process records at a time. Not
// thread-safe.
class ActivityRecorder {
 public:
  // Ends a recording and drops it.
  virtual ~ActivityRecorder() = default;

  // Begins a recording, in place of what was recorded before. FailedPrecondition if another
  // recorder records.
  virtual Error Start() = 0;
  // Ends the recording. Sets *kept to the number of its activities that have ended and found room,
  // and *dropped to that of the others. After an error both are 0.
  virtual Error Stop(size_t* kept, uint64_t* dropped) = 0;
  // Copies what Stop has kept, by begin.
  virtual void Copy(DeviceActivity* activities) const = 0;
};

}  // namespace thinwire
