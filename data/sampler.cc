#include "data/sampler.h"

#include <algorithm>
#include <cassert>

#include "base/digest.h"
#include "base/random.h"

namespace thinwire {
namespace {

constexpr Named<ShuffleKind> kShuffleNames[] = {{ShuffleKind::kSamples, "samples"},
                                                {ShuffleKind::kBatches, "batches"}};
constexpr Named<AugmentKind> kAugmentNames[] = {{AugmentKind::kNone, "none"},
                                                {AugmentKind::kFixed, "fixed"},
                                                {AugmentKind::kPerEpoch, "per_epoch"}};

// Epoch whose order decides which samples make which batch. Epochs count from 1, so no other use
// has it.
constexpr int64_t kFixedBatches = 0;

// Returns a number uniform in [0, bound), as RandomStream::Below does where that can.
int64_t Below(int64_t bound, RandomStream* random) {
  constexpr int64_t kWord = int64_t{1} << 32;
  if (bound < kWord) return random->Below(static_cast<uint32_t>(bound));
  const auto words = static_cast<uint32_t>((bound + kWord - 1) / kWord);
  int64_t drawn = bound;
  while (drawn >= bound) {
    const int64_t word = random->Below(words);
    drawn = word * kWord + random->Next();
  }
  return drawn;
}

}  // namespace

NameTable<ShuffleKind> TableOf(ShuffleKind) { return {"shuffle", kShuffleNames}; }
NameTable<AugmentKind> TableOf(AugmentKind) { return {"augment", kAugmentNames}; }

EpochOrder::EpochOrder(uint64_t seed, int64_t epoch, int64_t size)
    : samples_(RandomKey(RandomKey(seed, "shuffle"), epoch), size) {}

EpochOrder::EpochOrder(const Shuffle& shuffle, int64_t epoch, int64_t size)
    : EpochOrder(shuffle.seed, shuffle.kind == ShuffleKind::kBatches ? kFixedBatches : epoch,
                 size) {
  if (shuffle.kind == ShuffleKind::kSamples) return;
  batch_size_ = shuffle.batch_size;
  batches_ = Permutation(RandomKey(RandomKey(shuffle.seed, "batches"), epoch), size / batch_size_);
}

int64_t EpochOrder::operator[](int64_t place) const {
  const int64_t batch = place / batch_size_;
  return samples_[Batch(batch) * batch_size_ + place % batch_size_];
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
  Dataset::Augmentation augmentation;
  if (data.is_text()) {
    if (data.places() > 0) augmentation.place = Below(data.places(), &random);
    if (data.hides_tokens()) augmentation.mask = RandomKey(RandomKey(seed, "mask"), of_epoch);
    return augmentation;
  }
  const int padding = data.crop_padding();
  const auto shift = [&random, padding] {
    return static_cast<int>(random.Below(static_cast<uint32_t>(2 * padding + 1))) - padding;
  };
  augmentation.dy = shift();
  augmentation.dx = shift();
  augmentation.flip = data.may_flip() && random.Below(2) == 1;
  if (data.crops_anywhere())
    augmentation.crop = RandomKey(RandomKey(seed, "crop"), of_epoch, sample);
  return augmentation;
}

}  // namespace thinwire
