// Choice of the samples of each batch and of their augmentation. All are pure functions of (seed,
// epoch, sample), so that the first and the last stage agree without communication.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "base/enum_names.h"
#include "data/dataset.h"
#include "data/permutation.h"

namespace thinwire {

// Units that are shuffled in each epoch.
enum class ShuffleKind : uint8_t {
  kSamples,  // the samples
  // The batches, each of which keeps its samples in every epoch; a smaller one stays last.
  kBatches,
};

// Returns the names "samples" and "batches" (base/enum_names.h).
NameTable<ShuffleKind> TableOf(ShuffleKind);

// Shuffling of an epoch.
struct Shuffle {
  ShuffleKind kind = ShuffleKind::kSamples;
  uint64_t seed = 0;
  int64_t batch_size = 0;
};

// The order of an epoch: a permutation of the samples [0, size). Takes 32 MiB at most, however many
// there are. Immutable and thread-safe.
class EpochOrder {
 public:
  EpochOrder() = default;  // of no samples
  // Epochs count from 1.
  EpochOrder(uint64_t seed, int64_t epoch, int64_t size);
  EpochOrder(const Shuffle& shuffle, int64_t epoch, int64_t size);

  int64_t size() const { return samples_.size(); }
  // Returns the sample at a place in the epoch.
  int64_t operator[](int64_t place) const;
  // Returns the batch at a place among those of the epoch. Under kBatches it is a number that
  // always means the same samples; under kSamples it is the place.
  int64_t Batch(int64_t place) const { return place < batches_.size() ? batches_[place] : place; }

 private:
  Permutation samples_;
  Permutation batches_;  // kBatches: those that are not smaller
  int64_t batch_size_ = 1;
};

// Returns the number of batches. Batch i of an epoch has samples [i batch, min((i+1) batch, size))
// of the order; a smaller last batch is kept.
int64_t NumBatches(int64_t size, int64_t batch_size);

// Range [first, last) of samples. Microbatch `microbatch` of `count` of a batch of n samples: sizes
// differ by at most one, the larger ones first. `count` must not exceed n, so callers use
// min(count, n) microbatches.
struct SampleRange {
  int64_t first = 0, last = 0;

  friend bool operator==(const SampleRange& a, const SampleRange& b) {
    return a.first == b.first && a.last == b.last;
  }
};
SampleRange MicrobatchRange(int64_t n, int count, int microbatch);

// Returns the 64-bit digest that frames carry for the samples of one microbatch.
uint64_t SampleDigest(absl::Span<const int64_t> samples);

// Kinds of augmentation. kFixed: the same for a sample in every epoch; kPerEpoch: drawn again in
// each epoch.
enum class AugmentKind { kNone, kFixed, kPerEpoch };

// Returns the names "none", "fixed" and "per_epoch".
NameTable<AugmentKind> TableOf(AugmentKind);

// Returns how a sample is augmented in an epoch.
Dataset::Augmentation AugmentationOf(const Dataset& data, AugmentKind kind, uint64_t seed,
                                     int64_t epoch, int64_t sample);

}  // namespace thinwire
