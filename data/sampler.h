// Which samples make which batch, and how each is augmented: pure functions of (seed, epoch,
// sample), so that the first and the last stage agree without talking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "data/dataset.h"

namespace thinwire {

// The order of an epoch: a permutation of [0, size). Epochs count from 1.
std::vector<int64_t> EpochOrder(uint64_t seed, int64_t epoch, int64_t size);

// What is shuffled anew in each epoch.
enum class ShuffleKind : uint8_t {
  kSamples,  // the samples
  kBatches,  // the batches, which hold the same samples in every epoch; a smaller one stays last
};

// "samples", "batches"; the inverse gives InvalidArgument with the known ones.
const char* Name(ShuffleKind kind);
absl::Status FromName(const std::string& name, ShuffleKind* to);
std::vector<ShuffleKind> AllShuffles();

struct Shuffle {
  ShuffleKind kind = ShuffleKind::kSamples;
  uint64_t seed = 0;
  int64_t batch_size = 0;
};

// The order of an epoch under either kind.
std::vector<int64_t> EpochOrder(const Shuffle& shuffle, int64_t epoch, int64_t size);

// Which batch stands where in an epoch: entry i names batch i of the epoch by a number that, under
// kBatches, always means the same samples. Under kSamples entry i is i.
std::vector<int64_t> BatchOrder(const Shuffle& shuffle, int64_t epoch, int64_t size);

// Batch i of an epoch: samples [i batch, min((i+1) batch, size)) of the order. Partial last
// batches are kept.
int64_t NumBatches(int64_t size, int64_t batch_size);

// Microbatch m of `count` of a batch of n samples: [first, last). Sizes differ by at most one,
// the larger ones first. `count` must not exceed n: callers use min(count, n) microbatches.
struct SampleRange {
  int64_t first = 0, last = 0;

  friend bool operator==(const SampleRange& a, const SampleRange& b) {
    return a.first == b.first && a.last == b.last;
  }
};
SampleRange MicrobatchRange(int64_t n, int count, int microbatch);

// The 64-bit digest that frames carry for the samples of one microbatch.
uint64_t SampleDigest(absl::Span<const int64_t> samples);

// fixed: per sample; per_epoch: anew in each epoch.
enum class AugmentKind { kNone, kFixed, kPerEpoch };

// "none", "fixed", "per_epoch"; the inverse gives InvalidArgument with the known ones.
const char* Name(AugmentKind kind);
absl::Status FromName(const std::string& name, AugmentKind* to);
std::vector<AugmentKind> AllAugmentations();

Dataset::Augmentation AugmentationOf(const Dataset& data, AugmentKind kind, uint64_t seed,
                                     int64_t epoch, int64_t sample);

}  // namespace thinwire
