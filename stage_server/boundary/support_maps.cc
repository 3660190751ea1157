#include "stage_server/boundary/support_maps.h"

namespace thinwire {

void SupportMaps::Put(const MessageKey& activation, SupportMap map) {
  const std::lock_guard<std::mutex> lock(mutex_);
  maps_.insert_or_assign({activation.step, activation.microbatch}, std::move(map));
}

absl::StatusOr<SupportMap> SupportMaps::Take(const MessageKey& gradient) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto node = maps_.extract({gradient.step, gradient.microbatch});
  if (node.empty()) {
    return absl::FailedPreconditionError(
        "a gradient whose activation has not passed: its support is not known");
  }
  return std::move(node.mapped());
}

void SupportMaps::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  maps_.clear();
}

}  // namespace thinwire
