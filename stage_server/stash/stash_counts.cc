#include "stage_server/stash/stash_counts.h"

namespace thinwire {

void StashCounts::AddEncoding(const BoundaryStatistics::Traffic& encoded,
                              const Stopwatch::Reading& took) {
  const std::lock_guard<std::mutex> lock(mutex_);
  all_.train += encoded;
  all_.encode.Observe(took.seconds);
  all_.encode_cpu_seconds += took.cpu_seconds;
}

void StashCounts::AddError(const MeasuredError& error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  all_.errors.Add(error);
}

void StashCounts::AddDecoding(const Stopwatch::Reading& took) {
  const std::lock_guard<std::mutex> lock(mutex_);
  all_.decode.Observe(took.seconds);
  all_.decode_cpu_seconds += took.cpu_seconds;
}

BoundaryStatistics StashCounts::all() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return all_;
}

}  // namespace thinwire
