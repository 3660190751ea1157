// Ranges of keys in which a scope's K-th largest lies, and how they become narrower.
//
// A key has 63 bits: the magnitude, and below it how far the element lies from the end of its
// scope. So the first of equal magnitudes is the largest, and no two keys are equal. A key's digit
// says in which of up to kBins equal parts of a range it lies. From the numbers of keys in each
// part follows which part has the K-th largest.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/keys.cuh"
#include "tensor/cuda/scan.cuh"

namespace thinwire {

constexpr int kDigitBits = 11;
constexpr int kBins = 1 << kDigitBits;
constexpr uint32_t kMagnitudesEnd = 1u << 31;          // one more than the greatest magnitude
constexpr uint64_t kLeastNonZero = uint64_t{1} << 32;  // least key of magnitude 1

// Range of keys: those from `upper` on are kept, and so are the `wanted` largest of the `inside`
// ones in [lower, upper).
struct KeyRange {
  __device__ bool is_open() const { return lower < upper; }
  __device__ bool Has(uint64_t key) const { return key >= lower && key < upper; }
  uint64_t lower, upper, wanted;
  uint32_t inside;
};

// Ends of a range that have the first key of a magnitude.
struct MagnitudeRange {
  __device__ explicit MagnitudeRange(const KeyRange& range)
      : lower(static_cast<uint32_t>(range.lower >> 32)),
        upper(static_cast<uint32_t>(range.upper >> 32)) {}
  uint32_t lower, upper;
};

// Returns whether a guessed range has the K-th largest, given how many keys are above it and inside
// it. It is right, too, if it has all of fewer than K keys that may be kept.
__device__ inline bool HasKth(const KeyRange& guess, const KeyRange& whole, uint64_t above,
                              uint64_t inside) {
  return above <= whole.wanted && (above + inside >= whole.wanted || guess.lower == whole.lower);
}

// Returns the range of all keys that may be kept of a scope.
__device__ inline KeyRange WholeRange(const KeepRule& rule, int64_t scope, int64_t scopes) {
  return {rule.zeros ? 0 : kLeastNonZero, uint64_t{kMagnitudesEnd} << 32,
          static_cast<uint64_t>(rule.k_of(scope, scopes)), 0};
}

// Digits of the keys within a range.
struct Digits {
  __device__ uint32_t Of(uint64_t key) const {
    return static_cast<uint32_t>((key - lower) >> shift);
  }
  __device__ uint64_t BeginOf(int digit) const {
    return lower + (static_cast<uint64_t>(digit) << shift);
  }
  uint64_t lower;
  int shift;  // how many low bits of the distance from `lower` they leave out
};

// Returns the digits of a range. 64 less the zeros above the highest set bit is the number of bits
// that the greatest distance has.
__device__ inline Digits DigitsOf(const KeyRange& range) {
  const auto most = static_cast<long long>(range.upper - range.lower - 1);
  return {range.lower, max(64 - __clzll(most) - kDigitBits, 0)};
}

// Bins of this thread of `kThreads`, from the top, and the keys in all bins above them.
template <int kThreads>
struct OwnBins {
  static constexpr int kEach = kBins / kThreads;
  // The whole block calls it, and all threads' counts are in `bins`. It ends like a
  // __syncthreads().
  __device__ explicit OwnBins(const uint32_t* bins)
      : top(kBins - 1 - static_cast<int>(threadIdx.x) * kEach) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) sum += counts[j] = bins[top - j];
    above = BlockExclusiveSum(sum, &total);
  }
  int top;  // number of the first bin
  uint32_t counts[kEach], sum = 0, above, total;
};

// Returns the part of an open range that has the K-th largest, by the numbers of its keys with each
// digit. The whole block calls it, as OwnBins.
template <int kThreads>
__device__ KeyRange Pick(const uint32_t* bins, const KeyRange& range) {
  __shared__ KeyRange next;
  const OwnBins<kThreads> own(bins);
  uint32_t above = own.above;
  if (own.total < range.wanted) {  // without zeros there are fewer: all are kept
    if (threadIdx.x == 0) next = {range.lower, range.lower, 0, 0};
  } else if (range.wanted > above && range.wanted <= uint64_t{above} + own.sum) {
    const Digits digits = DigitsOf(range);
#pragma unroll
    for (int j = 0; j < own.kEach; ++j) {
      if (range.wanted > above && range.wanted <= uint64_t{above} + own.counts[j]) {
        next.lower = digits.BeginOf(own.top - j);
        next.wanted = range.wanted - above;
        next.inside = own.counts[j];
        next.upper = next.wanted == next.inside ? next.lower
                                                : min(range.upper, digits.BeginOf(own.top - j + 1));
      }
      above += own.counts[j];
    }
  }
  __syncthreads();
  const KeyRange picked = next;
  __syncthreads();
  return picked;
}

}  // namespace thinwire
