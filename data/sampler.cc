#include "data/sampler.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

#include "base/digest.h"
#include "base/random.h"

namespace thinwire {

std::vector<int64_t> EpochOrder(uint64_t seed, int64_t epoch, int64_t size) {
  assert(0 <= size && size <= std::numeric_limits<uint32_t>::max());
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(RandomKey(RandomKey(seed, "shuffle"), epoch));
  for (int64_t i = size - 1; i > 0; --i) {  // Fisher-Yates
    std::swap(order[i], order[random.Below(static_cast<uint32_t>(i + 1))]);
  }
  return order;
}

int64_t NumBatches(int64_t size, int64_t batch_size) {
  assert(batch_size > 0);
  return (size + batch_size - 1) / batch_size;
}

SampleRange MicrobatchRange(int64_t n, int count, int microbatch) {
  assert(0 <= microbatch && microbatch < count && count <= n);
  const int64_t each = n / count, larger = n % count;
  const int64_t first = microbatch * each + std::min<int64_t>(microbatch, larger);
  return {first, first + each + (microbatch < larger)};
}

uint64_t SampleDigest(absl::Span<const int64_t> samples) {
  Digest digest;
  for (int64_t sample : samples) digest.AddWord(static_cast<uint64_t>(sample));
  return digest.value();
}

Dataset::Augmentation AugmentationOf(const Dataset& data, AugmentKind kind, uint64_t seed,
                                     int64_t epoch, int64_t sample) {
  if (kind == AugmentKind::kNone) return {};
  const uint64_t of_epoch = kind == AugmentKind::kPerEpoch ? epoch : 0;
  RandomStream random(RandomKey(RandomKey(seed, "augment"), of_epoch, sample));
  const int padding = data.crop_padding();
  const auto shift = [&random, padding] {
    return static_cast<int>(random.Below(static_cast<uint32_t>(2 * padding + 1))) - padding;
  };
  Dataset::Augmentation augmentation;
  augmentation.dy = shift();
  augmentation.dx = shift();
  augmentation.flip = data.may_flip() && random.Below(2) == 1;
  return augmentation;
}

}  // namespace thinwire
