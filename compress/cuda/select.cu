// Selection in scopes that one warp or one block holds in its registers.
//
// x is read once. The K-th largest magnitude is found bit by bit from the highest: a bit stays set
// if at least K elements are that large. It ends when exactly K are left.
#include "compress/cuda/keys.cuh"
#include "compress/cuda/select.h"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;

// Sums over the warps of a scope, which are a part of a block or all of it.
template <int kWarps>
class ScopeSum {
 public:
  __device__ explicit ScopeSum(uint32_t (*of_warps)[kWarps]) : of_warps_(of_warps) {}

  // Returns the sum of `value` over the scope's threads. Sets *before to the sum over the warps
  // before this one.
  __device__ uint32_t operator()(uint32_t value, uint32_t* before) {
    value = WarpReduce<Sum>(value);
    *before = 0;
    if (kWarps == 1) return value;
    const int warp = threadIdx.x / kWarpThreads;
    // Two arrays are used in turn: this call's barrier comes after all threads have read the other
    // one.
    turn_ ^= 1;
    if (threadIdx.x % kWarpThreads == 0) of_warps_[turn_][warp] = value;
    __syncthreads();
    uint32_t sum = 0;
    for (int i = 0; i < kWarps; ++i) {
      if (i == warp) *before = sum;
      sum += of_warps_[turn_][i];
    }
    return sum;
  }

 private:
  uint32_t (*of_warps_)[kWarps];
  int turn_ = 0;
};

template <int kWords>
__device__ uint32_t CountAtLeast(const uint32_t (&magnitudes)[kWords], uint32_t least) {
  uint32_t count = 0;
#pragma unroll
  for (int j = 0; j < kWords; ++j) count += magnitudes[j] >= least;
  return count;
}

// Counts the elements of [begin, end) whose magnitude equals the threshold. `magnitudes` are this
// lane's elements of the words from first_word on.
template <int kWords>
__device__ uint32_t CountTies(const uint32_t (&magnitudes)[kWords], uint32_t threshold,
                              int64_t first_word, int64_t begin, int64_t end) {
  uint32_t count = 0;
#pragma unroll
  for (int j = 0; j < kWords; ++j) {
    const int64_t i = (first_word + j) * 32 + threadIdx.x % kWarpThreads;
    count += i >= begin && i < end && magnitudes[j] == threshold;
  }
  return count;
}

// Returns, in lane j, word first_word + j of the kept elements: those above the threshold, and the
// first `ties` of those that equal it, of which `before` lie in earlier warps.
template <int kWords>
__device__ uint32_t KeptWord(const uint32_t (&magnitudes)[kWords], uint32_t threshold,
                             uint32_t ties, uint32_t before, int64_t first_word, int64_t begin,
                             int64_t end) {
  const unsigned lane = threadIdx.x % kWarpThreads;
  uint32_t own_word = 0;
#pragma unroll
  for (int j = 0; j < kWords; ++j) {
    const int64_t i = (first_word + j) * 32 + lane;
    const bool is_tie = i >= begin && i < end && magnitudes[j] == threshold;
    // A vote has bit i set if lane i's condition holds; the ties of lower lanes are the set bits
    // below this lane's.
    const uint32_t all_ties = __ballot_sync(kWholeWarp, is_tie);
    const bool is_kept =
        magnitudes[j] > threshold || (is_tie && before + __popc(BitsBelow(all_ties, lane)) < ties);
    const uint32_t word = __ballot_sync(kWholeWarp, is_kept);
    if (lane == static_cast<unsigned>(j)) own_word = word;
    before += __popc(all_ties);
  }
  return own_word;
}

// Selects in scopes. Lanes hold neighbours, so that each vote of a warp is a word of the bitmap.
// Each warp has kWords words of its scope, which need not begin or end at a word.
template <typename K, int kWarps, int kWords>
__global__ void SelectKernel(K keys, int64_t scopes, KeepRule rule, uint32_t* kept,
                             uint32_t* nonfinite) {
  __shared__ uint32_t of_warps[2][kWarps];
  ScopeSum<kWarps> sum(of_warps);
  uint32_t before;
  const unsigned lane = threadIdx.x % kWarpThreads;
  const int64_t scope =
      (int64_t{blockIdx.x} * kThreads + threadIdx.x) / (kWarps * int64_t{kWarpThreads});
  if (scope >= scopes) return;  // whole warps, and with kWarps > 1 whole blocks
  const int64_t begin = scope * keys.elements, end = min(begin + keys.elements, keys.total);
  const auto k = static_cast<uint32_t>(rule.k_of(scope, scopes));
  const int64_t first_word = begin / 32 + threadIdx.x / kWarpThreads % kWarps * kWords;

  uint32_t magnitudes[kWords], largest = 0;
#pragma unroll
  for (int j = 0; j < kWords; ++j) {
    const int64_t i = (first_word + j) * 32 + lane;
    magnitudes[j] = i >= begin && i < end ? keys.Magnitude(i) : 0;
    largest = max(largest, magnitudes[j]);
  }
  if (nonfinite != nullptr && largest >= kNonFiniteMagnitude) atomicOr(nonfinite, 1u);

  uint32_t threshold = 0;
  for (int bit = 30; bit >= 0; --bit) {
    const uint32_t higher = threshold | 1u << bit;
    const uint32_t count = sum(CountAtLeast(magnitudes, higher), &before);
    if (count >= k) threshold = higher;
    if (count == k) break;
  }

  // Elements equal to the threshold are taken in order until there are k. With a threshold of zero
  // there are fewer than k others: all are kept, and as many zeros as are wanted.
  const uint32_t above = sum(CountAtLeast(magnitudes, threshold + 1), &before);
  const uint32_t ties = threshold > 0 || rule.zeros ? k - above : 0;
  sum(CountTies(magnitudes, threshold, first_word, begin, end), &before);
  const uint32_t word = KeptWord(magnitudes, threshold, ties, before, first_word, begin, end);
  if (lane < kWords) StoreWordOf(begin, end, word, first_word + lane, kept);
}

template <int kWarps, int kWords, typename K>
Error Submit(CudaDevice* device, const Keys& keys, const K& typed, const KeepRule& rule,
             uint32_t* kept, uint32_t* nonfinite) {
  static_assert(kThreads % (kWarps * kWarpThreads) == 0 && kWords <= 32, "warps are whole");
  return Launch(device, BlocksFor(keys.scopes(), kThreads / (kWarps * kWarpThreads)),
                dim3(kThreads), SelectKernel<K, kWarps, kWords>, typed, keys.scopes(), rule, kept,
                nonfinite);
}

}  // namespace

Error SubmitSelectInSmallScopes(CudaDevice* device, const Keys& keys, const KeepRule& rule,
                                uint32_t* kept, uint32_t* nonfinite) {
  const int64_t words = WordsOfScope(keys.elements);
  return WithKeysInMemory(keys, [&](const auto& typed) {
    if (words <= 4) return Submit<1, 4>(device, keys, typed, rule, kept, nonfinite);
    if (words <= 8) return Submit<1, 8>(device, keys, typed, rule, kept, nonfinite);
    if (words <= 32) return Submit<1, 32>(device, keys, typed, rule, kept, nonfinite);
    if (words <= 128) return Submit<8, 16>(device, keys, typed, rule, kept, nonfinite);
    return Submit<8, 32>(device, keys, typed, rule, kept, nonfinite);
  });
}

}  // namespace thinwire
