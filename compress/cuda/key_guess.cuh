// Guesses of where a scope's K-th largest key lies, which save a look at all keys. Who takes one
// counts the keys above the guessed range and inside it, which says whether the guess was right.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/key_range.cuh"

namespace thinwire {

// Returns a range in which the K-th largest of `n` uniform draws lies but for a rare chance: six
// standard deviations on both sides of its expected place, and some draws for a K near 1 or n.
__device__ inline KeyRange GuessOfDraws(int64_t n, uint64_t k) {
  const double share = static_cast<double>(k) / static_cast<double>(n);
  const double deviation = sqrt(share * (1 - share) / static_cast<double>(n));
  const double middle = 1 - share, reach = 6 * deviation + 16.0 / static_cast<double>(n);
  const auto key_at = [](double place) {
    return static_cast<uint64_t>(fmin(fmax(place, 0.0), 1.0) * kMostDraw) + 1;
  };
  const uint64_t lower = key_at(middle - reach), upper = key_at(middle + reach) + 1;
  return {lower << 32, upper << 32, k, 0};
}

// Sample of the keys in [begin, end): vectors of four neighbours at equal distances, which go on
// from the begin behind the end. The distance is odd, so that no columns are in the sample more
// often than others where rows have a power of two.
struct Sample {
  __device__ Sample(int64_t begin, int64_t end, int most)
      : first((begin + 3) / 4 * 4),
        total((end - first) / 4),
        vectors(static_cast<int>(min(total, int64_t{most} / 4))),
        distance(total / max(vectors, 1) / 2 * 2 + 1) {}
  __device__ int elements() const { return 4 * vectors; }
  // Returns where the vector begins. Distances add up to less than twice `total`.
  __device__ int64_t BeginOf(int vector) const {
    const int64_t place = vector * distance;
    return first + 4 * (place < total ? place : place - total);
  }
  int64_t first, total;
  int vectors;
  int64_t distance;
};

// Returns the magnitude above which about `rank` of a sample's magnitudes lie, whose upper
// kDigitBits bits are their digits. Between the ends of a bin it takes a straight line. Only the
// thread that has the bin returns it, all others zero.
template <int kThreads>
__device__ uint32_t MagnitudeOfRank(const OwnBins<kThreads>& own, float rank) {
  constexpr int kShift = 31 - kDigitBits;
  float above = static_cast<float>(own.above);
  uint32_t found = 0;
#pragma unroll
  for (int j = 0; j < own.kEach; ++j) {
    const auto count = static_cast<float>(own.counts[j]);
    if (rank >= above && rank < above + count) {
      const uint32_t end = static_cast<uint32_t>(own.top - j + 1) << kShift;
      found = end - static_cast<uint32_t>((rank - above) / count * (1 << kShift));
    }
    above += count;
  }
  return found;
}

// How far a range reaches to both sides of a sample's expected rank, in standard deviations of a
// rank. Neighbours are alike, so a sample says less than as many independent keys would.
struct Reach {
  __device__ Reach(float deviations, int64_t elements, uint64_t k, int sampled)
      : share(static_cast<float>(k) / static_cast<float>(elements)),
        rank(share * static_cast<float>(sampled)),
        reach(deviations * sqrtf(rank * (1 - share)) + 2) {}
  __device__ float least() const { return rank - reach; }
  __device__ float most() const { return rank + reach; }
  float share, rank, reach;
};

// Counts a sample's magnitudes by their upper kDigitBits bits. The whole block calls it; it ends
// like a __syncthreads().
template <int kThreads, typename K>
__device__ void CountSample(const K& keys, const Sample& sample, uint32_t (&bins)[kBins]) {
  constexpr int kAtOnce = 4;  // loads of a thread at a time
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) bins[i] = 0;
  __syncthreads();
  for (int first = static_cast<int>(threadIdx.x); first < sample.vectors;
       first += kAtOnce * kThreads) {
    uint32_t magnitudes[kAtOnce][4];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int vector = first + j * kThreads;
      if (vector < sample.vectors) keys.Magnitudes(sample.BeginOf(vector), magnitudes[j]);
    }
#pragma unroll
    for (int j = 0; j < 4 * kAtOnce; ++j) {
      if (first + j / 4 * kThreads >= sample.vectors) continue;
      atomicAdd(&bins[magnitudes[j / 4][j % 4] >> (31 - kDigitBits)], 1u);
    }
  }
  __syncthreads();
}

// Returns a range of magnitudes above zero in which the K-th largest lies but for a rare chance, by
// a sample. The first bin has zeros and denormal numbers: a range that reaches it has all of them
// but zeros. The whole block calls it; it ends like a __syncthreads().
template <int kThreads, typename K>
__device__ KeyRange GuessOfSample(const K& keys, const Sample& sample, const Reach& reach,
                                  uint64_t k, uint32_t (&bins)[kBins]) {
  __shared__ uint32_t edges[2];
  if (threadIdx.x < 2) edges[threadIdx.x] = threadIdx.x == 0 ? 1 : kMagnitudesEnd;
  CountSample<kThreads>(keys, sample, bins);
  const OwnBins<kThreads> own(bins);
  const uint32_t first_upper = MagnitudeOfRank(own, reach.least());
  const uint32_t first_lower = MagnitudeOfRank(own, reach.most());
  if (first_upper != 0) edges[1] = first_upper;
  if (first_lower > 1u << (31 - kDigitBits)) edges[0] = first_lower;
  __syncthreads();
  const uint64_t lower = edges[0], upper = max(edges[1], edges[0] + 1);
  __syncthreads();
  return {lower << 32, upper << 32, k, 0};
}

}  // namespace thinwire
