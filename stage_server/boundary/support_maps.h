// Positions of the non-zeros of activations that have crossed a cut, kept at one end of it until
// their gradients come back. `indices: shared` and `support: received_nonzero` need them. The
// schedule bounds how many maps there are.
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

// Thread-safe.
class SupportMaps {
 public:
  // Keeps `map` for the gradient of the same step and microbatch.
  void Put(const MessageKey& activation, SupportMap map);
  // Removes and returns the map of the same step and microbatch. FailedPrecondition if that
  // activation has not passed.
  absl::StatusOr<SupportMap> Take(const MessageKey& gradient);
  // Drops the maps that a broken step left behind.
  void Clear();

 private:
  std::mutex mutex_;  // not absl's: the thread sanitizer would not see it
  // Maps by step and microbatch.
  std::map<std::pair<uint64_t, uint32_t>, SupportMap> maps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
