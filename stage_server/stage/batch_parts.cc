#include "stage_server/stage/batch_parts.h"

#include <algorithm>

namespace thinwire {

std::vector<SampleRange> BatchesOf(const SampleRange& all, int64_t batch_size) {
  std::vector<SampleRange> batches;
  for (int64_t first = all.first; first < all.last; first += batch_size) {
    batches.push_back({first, std::min(first + batch_size, all.last)});
  }
  return batches;
}

int MicrobatchesOf(const StageSpec& spec, int64_t batch_size) {
  return static_cast<int>(std::min<int64_t>(spec.batch_microbatches(), batch_size));
}

int ReplicasWithSamples(const StageSpec& spec, int64_t batch_size) {
  return (MicrobatchesOf(spec, batch_size) + spec.microbatches - 1) / spec.microbatches;
}

int64_t SamplesOf(const StageSpec& spec, int64_t batch_size, int replica) {
  const int count = MicrobatchesOf(spec, batch_size);
  const int first = std::min(replica * spec.microbatches, count);
  const int end = std::min(first + spec.microbatches, count);
  if (first == end) return 0;
  return MicrobatchRange(batch_size, count, end - 1).last -
         MicrobatchRange(batch_size, count, first).first;
}

std::vector<std::vector<SampleRange>> PartsOf(const StageSpec& spec, const SampleRange& batch) {
  const int64_t samples = batch.last - batch.first;
  const int count = MicrobatchesOf(spec, samples);
  const ReplicaRange carried = spec.carried();
  std::vector<std::vector<SampleRange>> parts(static_cast<size_t>(carried.size()));
  for (int m = 0; m < count; ++m) {
    const int replica = m / spec.microbatches;
    if (!carried.has(replica)) continue;
    const SampleRange part = MicrobatchRange(samples, count, m);
    parts[static_cast<size_t>(replica - carried.first)].push_back(
        {batch.first + part.first, batch.first + part.last});
  }
  return parts;
}

}  // namespace thinwire
