#include <type_traits>

#include "compress/cuda/block_select.h"
#include "compress/cuda/keys.cuh"
#include "compress/cuda/word_votes.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kAtOnce = 4;  // vectors that a lane loads at a time
constexpr int kKeyBits = 63, kDigitBits = 11;
constexpr int kBins = 1 << kDigitBits;
constexpr int kListed = 4096;  // most keys listed in shared memory
constexpr int kFirstNonFiniteBin = kNonFiniteMagnitude >> (31 - kDigitBits);

// Digit of a key: up to kDigitBits bits, the highest just below bit `top`.
struct Digit {
  __device__ explicit Digit(int top)
      : shift(top > kDigitBits ? top - kDigitBits : 0), bits(top - shift) {}
  __device__ uint32_t Of(uint64_t key) const {
    return static_cast<uint32_t>(key >> shift) & ((1u << bits) - 1);
  }
  int shift, bits;
};

// Range of keys: those from `upper` on are kept, and so are the `wanted` largest of the `inside`
// ones in [lower, upper).
struct Range {
  __device__ bool is_open() const { return lower < upper; }
  __device__ bool Has(uint64_t key) const { return key >= lower && key < upper; }
  uint64_t lower, upper, wanted;
  uint32_t inside;
};

// Scope of a block. Its elements are counted from a multiple of 32, so that bitmap words are whole.
struct Scope {
  __device__ Scope(int64_t elements, int64_t total)
      : base(elements * blockIdx.x / 32 * 32),
        head(static_cast<int>(elements * blockIdx.x - base)),
        tail(static_cast<int>(min(head + elements, total - base))) {}
  __device__ bool Has(int at) const { return at >= head && at < tail; }
  __device__ uint64_t KeyOf(int at, uint32_t magnitude) const {
    return uint64_t{magnitude} << 32 | static_cast<uint32_t>(tail - 1 - at);
  }
  __device__ int64_t ElementOf(uint64_t key) const {
    return base + tail - 1 - static_cast<int>(static_cast<uint32_t>(key));
  }
  int64_t base;
  int head, tail;
};

// Calls visit(first, vector, magnitudes) for each group of kAtOnce vectors of the warp. `first` is
// the first of the warp's elements, magnitudes[j] are those of vector `vector` + j. Calls
// done(first) after the last group. Elements of neighbouring scopes are among them.
template <typename K, typename Visit, typename Done>
__device__ void VisitScope(const K& keys, const Scope& scope, const Visit& visit,
                           const Done& done) {
  const int warp = static_cast<int>(threadIdx.x / kWarpThreads);
  const int step = 32 * static_cast<int>(blockDim.x);
  for (int first = warp * kElementsOfWarp; first < scope.tail; first += step) {
#pragma unroll 1
    for (int vector = 0; vector < kVectorsOfLane; vector += kAtOnce) {
      uint32_t magnitudes[kAtOnce][4];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        keys.Magnitudes(scope.base + first + VectorBegin(vector + j), magnitudes[j]);
      }
      visit(first, vector, magnitudes);
    }
    done(first);
  }
}

// The whole block calls the next functions, which begin and end like a __syncthreads().

__device__ void Clear(uint32_t (&bins)[kBins]) {
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) bins[i] = 0;
  __syncthreads();
}

template <typename K>
__device__ void CountScope(const K& keys, const Scope& scope, const Range& range,
                           const Digit& digit, uint32_t (&bins)[kBins]) {
  Clear(bins);
  const auto count = [&](int first, int vector, const uint32_t(&magnitudes)[kAtOnce][4]) {
#pragma unroll
    for (int j = 0; j < 4 * kAtOnce; ++j) {
      const int at = first + VectorBegin(vector + j / 4) + j % 4;
      const uint64_t key = scope.KeyOf(at, magnitudes[j / 4][j % 4]);
      if (scope.Has(at) && range.Has(key)) atomicAdd(&bins[digit.Of(key)], 1u);
    }
  };
  VisitScope(keys, scope, count, [](int) {});
  __syncthreads();
}

__device__ void CountListed(const uint64_t (&listed)[kListed], uint32_t count, const Range& range,
                            const Digit& digit, uint32_t (&bins)[kBins]) {
  Clear(bins);
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    if (range.Has(listed[i])) atomicAdd(&bins[digit.Of(listed[i])], 1u);
  }
  __syncthreads();
}

// Returns the range of the digit where the K-th largest falls. Each thread sums some bins from the
// top; the prefix sum over threads tells which one passes `wanted`.
template <int kThreads>
__device__ Range Pick(const uint32_t (&bins)[kBins], const Range& range, const Digit& digit) {
  constexpr int kEach = kBins / kThreads;
  __shared__ Range next;
  const int top = kBins - 1 - static_cast<int>(threadIdx.x) * kEach;
  uint32_t counts[kEach], sum = 0, total;
#pragma unroll
  for (int j = 0; j < kEach; ++j) sum += counts[j] = bins[top - j];
  uint32_t above = BlockExclusiveSum(sum, &total);
  if (total < range.wanted) {  // without zeros there are fewer: all are kept
    if (threadIdx.x == 0) next = {range.lower, range.lower, 0, 0};
  } else if (range.wanted > above && range.wanted <= uint64_t{above} + sum) {
    const int higher = digit.shift + digit.bits;
    const uint64_t prefix = range.lower >> higher << higher;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if (range.wanted > above && range.wanted <= uint64_t{above} + counts[j]) {
        const uint64_t begin = prefix + (static_cast<uint64_t>(top - j) << digit.shift);
        next.lower = max(range.lower, begin);
        next.wanted = range.wanted - above;
        next.upper = next.wanted == counts[j] ? next.lower : begin + (uint64_t{1} << digit.shift);
        next.inside = counts[j];
      }
      above += counts[j];
    }
  }
  __syncthreads();
  const Range picked = next;
  __syncthreads();
  return picked;
}

// Numbers of a scope's keys above a range and inside it.
struct RangeCounts {
  uint32_t above, inside;
};

// Marks the elements above the range and lists the keys in it, of which kListed have room.
template <typename K>
__device__ void MarkAndList(const K& keys, const Scope& scope, const Range& range,
                            uint64_t (&listed)[kListed], RangeCounts* counts, uint32_t* kept) {
  if (threadIdx.x == 0) *counts = {0, 0};
  __syncthreads();
  uint32_t above = 0, num_above = 0;
  const auto mark = [&](int first, int vector, const uint32_t(&magnitudes)[kAtOnce][4]) {
    uint32_t own_above = 0, inside = 0;
#pragma unroll
    for (int j = 0; j < 4 * kAtOnce; ++j) {
      const int at = first + VectorBegin(vector + j / 4) + j % 4;
      const uint64_t key = scope.KeyOf(at, magnitudes[j / 4][j % 4]);
      if (scope.Has(at) && key >= range.upper) own_above |= 1u << j;
      if (scope.Has(at) && range.Has(key)) inside |= 1u << j;
    }
    above |= own_above << (4 * vector);
    if (!range.is_open()) return;
    // One atomic addition serves a warp: the last lane knows how many keys all lanes have.
    const uint32_t own = __popc(inside), through = WarpInclusiveSum(own);
    uint32_t begin = 0;
    if (threadIdx.x % kWarpThreads == kWarpThreads - 1) {
      begin = atomicAdd(&counts->inside, through);
    }
    uint32_t next = __shfl_sync(kWholeWarp, begin, kWarpThreads - 1) + through - own;
    // `left &= left - 1` clears the lowest set bit: the loop visits them from the lowest up.
    for (uint32_t left = inside; left != 0 && next < kListed; left &= left - 1) {
      const int j = __ffs(static_cast<int>(left)) - 1;
      const int at = first + VectorBegin(vector + j / 4) + j % 4;
      listed[next++] = scope.KeyOf(at, keys.Magnitude(scope.base + at));
    }
  };
  VisitScope(keys, scope, mark, [&](int first) {
    StoreWordOf(scope.head, scope.tail, WordOfVotes(above), first / 32 + WordOfLane(),
                kept + scope.base / 32);
    num_above += __popc(above);
    above = 0;
  });
  num_above = WarpReduce<Sum>(num_above);
  if (threadIdx.x % kWarpThreads == 0) atomicAdd(&counts->above, num_above);
  __syncthreads();
}

// Clears what MarkAndList has marked.
__device__ void Unmark(const Scope& scope, uint32_t* kept) {
  for (int word = threadIdx.x; word * 32 < scope.tail; word += blockDim.x) {
    uint32_t others = 0;  // bits of neighbouring scopes
    if (word * 32 < scope.head) others |= (1u << scope.head) - 1;
    if (word * 32 + 32 > scope.tail) others |= UINT32_MAX << (scope.tail % 32);
    atomicAnd(&kept[scope.base / 32 + word], others);
  }
  __syncthreads();
}

// Returns a range in which the K-th largest of `n` uniform draws lies but for a rare chance: six
// standard deviations on both sides of its expected place, and some draws for a K near 1 or n.
__device__ Range GuessOfDraws(int64_t n, uint64_t k) {
  const double share = static_cast<double>(k) / static_cast<double>(n);
  const double deviation = sqrt(share * (1 - share) / static_cast<double>(n));
  const double middle = 1 - share, reach = 6 * deviation + 16.0 / static_cast<double>(n);
  const auto key_at = [](double place) {
    return static_cast<uint64_t>(fmin(fmax(place, 0.0), 1.0) * kMostDraw) + 1;
  };
  const uint64_t lower = key_at(middle - reach), upper = key_at(middle + reach) + 1;
  return {lower << 32, upper << 32, k, 0};
}

// Marks and lists by a guess of where the K-th largest lies, in one look at all draws. Returns
// whether it lies there; *range then has what is wanted of the list. The range of a wrong guess is
// as it was, and nothing is marked.
__device__ bool MarkByGuess(const DrawnKeys& keys, const Scope& scope, Range* range,
                            uint64_t (&listed)[kListed], RangeCounts* counts, uint32_t* kept) {
  Range guess = GuessOfDraws(scope.tail - scope.head, range->wanted);
  MarkAndList(keys, scope, guess, listed, counts, kept);
  if (counts->above > range->wanted || counts->above + counts->inside < range->wanted ||
      counts->inside > kListed) {
    Unmark(scope, kept);
    return false;
  }
  guess.wanted = range->wanted - counts->above;
  guess.inside = counts->inside;
  if (guess.wanted == 0) guess.lower = guess.upper;
  *range = guess;
  return true;
}

template <int kThreads, typename K>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    SelectInScopeKernel(K keys, KeepRule rule, uint32_t* kept, uint32_t* nonfinite) {
  __shared__ uint32_t bins[kBins];
  __shared__ uint64_t listed[kListed];
  __shared__ RangeCounts counts;
  const Scope scope(keys.elements, keys.total);
  const auto k = static_cast<uint64_t>(rule.k_of(blockIdx.x, gridDim.x));
  constexpr uint64_t kLeastNonZero = uint64_t{1} << 32;  // of a magnitude of 1
  Range range = {rule.zeros ? 0 : kLeastNonZero, uint64_t{1} << kKeyBits, k, 0};
  int top = kKeyBits;
  bool is_marked = false;
  if constexpr (std::is_same_v<K, DrawnKeys>) {
    if (keys.support == nullptr) {
      is_marked = MarkByGuess(keys, scope, &range, listed, &counts, kept);
    }
    // The range's keys have equal bits from `top` on.
    if (is_marked && range.is_open()) top = 64 - __clzll(range.lower ^ (range.upper - 1));
  }
  if (!is_marked) {
    do {
      const Digit digit(top);
      CountScope(keys, scope, range, digit, bins);
      const int bin = kFirstNonFiniteBin + static_cast<int>(threadIdx.x);
      if (top == kKeyBits && nonfinite != nullptr && bin < kBins && bins[bin] != 0) {
        atomicOr(nonfinite, 1u);
      }
      range = Pick<kThreads>(bins, range, digit);
      top = digit.shift;
    } while (range.is_open() && range.inside > kListed);
    MarkAndList(keys, scope, range, listed, &counts, kept);
  }
  while (range.is_open()) {
    const Digit digit(top);
    CountListed(listed, counts.inside, range, digit, bins);
    range = Pick<kThreads>(bins, range, digit);
    top = digit.shift;
  }
  for (uint32_t i = threadIdx.x; i < counts.inside; i += kThreads) {
    if (listed[i] < range.upper) continue;
    const int64_t element = scope.ElementOf(listed[i]);
    atomicOr(&kept[element / 32], 1u << (element % 32));
  }
}

}  // namespace

Error SubmitSelectInScopesOfBlocks(cudaStream_t stream, const Keys& keys, const KeepRule& rule,
                                   uint32_t* kept, uint32_t* nonfinite) {
  constexpr int kMost = 1024, kLeast = 256;
  // A short scope takes two rounds of the smaller block.
  const bool is_short = keys.elements <= 2 * 32 * kLeast;
  const dim3 blocks(static_cast<unsigned>(keys.scopes()));
  return WithTypedKeys(keys, [&](const auto& typed) {
    using K = std::decay_t<decltype(typed)>;
    const auto kernel = is_short ? SelectInScopeKernel<kLeast, K> : SelectInScopeKernel<kMost, K>;
    return Launch(stream, blocks, dim3(is_short ? kLeast : kMost), kernel, typed, rule, kept,
                  nonfinite);
  });
}

}  // namespace thinwire
