// Sum of numbers in sequence, computed by all threads of a block, with the bits that one thread
// would get by adding them one after the other.
//
// As long as a sum keeps its exponent, an addition moves it by a whole number of its ulps (units in
// the last place): the number added, rounded to ulps. The rounding depends on the sum only if the
// number lies halfway between two ulps; then it depends on whether the sum is odd. So two integers
// say what a run of numbers does to a sum: how far it moves an even one and how far an odd one.
// These pairs combine associatively, and a scan finds where every addition leads.
//
// The first addition that changes the exponent is done as it is, and the next scan begins behind
// it. Sums of n numbers of similar size need about n / (kSumThreads * kSumEach) + log2(n /
// kSumAlone) scans.
#pragma once

#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "tensor/cuda/reduce.cuh"

namespace thinwire {

// Scans are small, because what lies behind a change of the exponent is scanned again.
constexpr int kSumThreads = 256;
constexpr int kSumEach = 8;  // numbers per thread in a scan
// Numbers that are added one by one before the first scan: they change the exponent most often, and
// a scan for each change takes longer.
constexpr int64_t kSumAlone = 512;
// Bound of a sum in ulps: it has fewer, and at least half as many.
constexpr int64_t kUlpsOfExponent = int64_t{1} << 53;

// Number of ulps by which some additions move a sum that is even or odd. From kUlpsOfExponent on it
// means "too far".
struct UlpSteps {
  int64_t of_even, of_odd;
};

// Returns how far `first` ulps and then `second` move a sum; the pair version does so for both
// parities.
__device__ inline int64_t Then(int64_t first, bool was_odd, const UlpSteps& second) {
  const bool is_odd = (first % 2 != 0) != was_odd;
  return min(first + (is_odd ? second.of_odd : second.of_even), kUlpsOfExponent);
}
__device__ inline UlpSteps Then(const UlpSteps& first, const UlpSteps& second) {
  return {Then(first.of_even, false, second), Then(first.of_odd, true, second)};
}

// Returns the steps of adding `value` (not negative) to a sum whose ulp is 1 / `ulps`. If `ulps` is
// 0 the sum is zero: it has no ulp, and any value but zero moves it too far.
__device__ inline UlpSteps StepsOf(double value, double ulps) {
  if (value == 0) return {0, 0};
  const double scaled = value * ulps;
  if (ulps == 0 || !(scaled < static_cast<double>(kUlpsOfExponent))) {
    return {kUlpsOfExponent, kUlpsOfExponent};
  }
  const int64_t whole = static_cast<int64_t>(scaled);
  const double rest = scaled - static_cast<double>(whole);
  if (rest != 0.5) return {whole + (rest > 0.5), whole + (rest > 0.5)};
  return {whole + whole % 2, whole + (whole + 1) % 2};  // to the even sum
}

// Returns the joined steps of the lanes up to this one, an inclusive scan; *before has those of the
// lanes below it. The whole warp calls it.
__device__ inline UlpSteps WarpSteps(UlpSteps own, UlpSteps* before) {
  const unsigned lane = threadIdx.x % kWarpThreads;
#pragma unroll
  for (unsigned distance = 1; distance < kWarpThreads; distance *= 2) {
    UlpSteps lower;
    lower.of_even = __shfl_up_sync(kWholeWarp, own.of_even, distance);
    lower.of_odd = __shfl_up_sync(kWholeWarp, own.of_odd, distance);
    if (lane >= distance) own = Then(lower, own);
  }
  before->of_even = __shfl_up_sync(kWholeWarp, own.of_even, 1);
  before->of_odd = __shfl_up_sync(kWholeWarp, own.of_odd, 1);
  if (lane == 0) *before = {0, 0};
  return own;
}

// Returns the joined steps of the block's threads before this one; *all has those of the whole
// block.
__device__ inline UlpSteps BlockStepsBefore(const UlpSteps& own, UlpSteps* all) {
  constexpr unsigned kWarps = kSumThreads / kWarpThreads;
  static_assert(kWarps <= kWarpThreads, "a lane for each warp");
  __shared__ UlpSteps of_warps[kWarps];
  const unsigned lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  UlpSteps before, before_warp;
  const UlpSteps through = WarpSteps(own, &before);
  if (lane == kWarpThreads - 1) of_warps[warp] = through;
  __syncthreads();
  const UlpSteps of_lane =
      WarpSteps(lane < kWarps ? of_warps[lane] : UlpSteps{0, 0}, &before_warp);
  all->of_even = __shfl_sync(kWholeWarp, of_lane.of_even, static_cast<int>(kWarps) - 1);
  all->of_odd = __shfl_sync(kWholeWarp, of_lane.of_odd, static_cast<int>(kWarps) - 1);
  UlpSteps of_earlier;
  of_earlier.of_even = __shfl_sync(kWholeWarp, before_warp.of_even, static_cast<int>(warp));
  of_earlier.of_odd = __shfl_sync(kWholeWarp, before_warp.of_odd, static_cast<int>(warp));
  __syncthreads();  // the next call writes of_warps
  return Then(of_earlier, before);
}

// Returns values[0] + values[1] + ... to every thread; all kSumThreads threads call it. Each value
// is zero or above 2^-900, as squares of fp32 are. If one is NaN or the sum is infinite, returns
// NaN or infinity.
__device__ inline double SumInOrder(const double* values, int64_t n) {
  constexpr int64_t kTile = int64_t{kSumThreads} * kSumEach;
  __shared__ double before_change;
  double sum = 0;
  int64_t begin = 0;
  for (; begin < n && begin < kSumAlone; ++begin) sum += values[begin];
  while (begin < n && sum <= DBL_MAX) {
    int exponent = 0;  // 2^exponent is the least power of two above the sum
    (void)frexp(sum, &exponent);
    const double ulp = ldexp(1.0, exponent - 53), ulps = sum > 0 ? ldexp(1.0, 53 - exponent) : 0;
    const int64_t sum_ulps = static_cast<int64_t>(sum * ulps);
    const bool is_odd = sum_ulps % 2 != 0;

    UlpSteps steps[kSumEach], own = {0, 0}, all;
    const int64_t first = begin + int64_t{threadIdx.x} * kSumEach;
#pragma unroll
    for (int j = 0; j < kSumEach; ++j) {
      steps[j] = first + j < n ? StepsOf(values[first + j], ulps) : UlpSteps{0, 0};
      own = Then(own, steps[j]);
    }
    const UlpSteps before = BlockStepsBefore(own, &all);
    int64_t done = is_odd ? before.of_odd : before.of_even;
    int64_t change = n;
    for (int j = 0; j < kSumEach; ++j) {
      const int64_t next = Then(done, is_odd, steps[j]);
      if (sum_ulps + next >= kUlpsOfExponent) {
        change = first + j;
        break;
      }
      done = next;
    }
    const int64_t first_change = BlockReduce<Least>(change);
    if (first_change == n) {
      sum += ulp * static_cast<double>(is_odd ? all.of_odd : all.of_even);
      begin += kTile;
      continue;
    }
    if (change == first_change) before_change = sum + ulp * static_cast<double>(done);
    __syncthreads();
    sum = before_change + values[first_change];
    __syncthreads();  // the next change writes it
    begin = first_change + 1;
  }
  return sum;
}

}  // namespace thinwire
