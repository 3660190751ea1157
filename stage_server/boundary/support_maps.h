// The non-zeros of activations that have crossed a cut, at one end of it, until their gradients
// come back: what `indices: shared` and `support: received_nonzero` rest on. The schedule bounds
// how many there are.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "compress/support.h"
#include "wire/message.h"

namespace thinwire {

// Any thread.
class SupportMaps {
 public:
  void Put(const MessageKey& activation, SupportMap map);
  // Takes out the map of the same step and microbatch. FailedPrecondition if that activation has
  // not passed.
  absl::StatusOr<SupportMap> Take(const MessageKey& gradient);
  // Drops what a broken step left behind.
  void Clear();

 private:
  std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  // By step and microbatch.
  std::map<std::pair<uint64_t, uint32_t>, SupportMap> maps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
