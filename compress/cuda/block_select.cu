// Selection with a block per scope.
//
// A guess (key_guess.cuh) says about where the K-th largest lies. One look at all keys marks what
// lies above that range and lists, in shared memory, what lies in it; the list decides the rest
// (key_range.cuh). If the guess was wrong, or the list has no room, the block counts the digits of
// all keys, until it knows a range that the list can hold, and then marks and lists by that.
#include <type_traits>

#include "compress/cuda/key_guess.cuh"
#include "compress/cuda/select.h"
#include "compress/cuda/word_votes.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kAtOnce = 4;     // vectors that a lane loads at a time
constexpr int kListed = 4096;  // most keys listed in shared memory
constexpr float kReachDeviations = 4;

// Scope of a block. Its elements are counted from a multiple of 32, so that bitmap words are whole.
struct Scope {
  __device__ Scope(int64_t elements, int64_t total)
      : base(elements * blockIdx.x / 32 * 32),
        head(static_cast<int>(elements * blockIdx.x - base)),
        tail(static_cast<int>(min(head + elements, total - base))) {}
  __device__ bool Has(int at) const { return at >= head && at < tail; }
  __device__ int elements() const { return tail - head; }
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
// done(first) after the last group. Elements of neighbouring scopes are among them, as zeros.
template <typename K, typename Visit, typename Done>
__device__ void VisitScope(const K& keys, const Scope& scope, const Visit& visit,
                           const Done& done) {
  const int warp = static_cast<int>(threadIdx.x / kWarpThreads);
  const int step = 32 * static_cast<int>(blockDim.x);
  for (int first = warp * kElementsOfWarp; first < scope.tail; first += step) {
    const bool is_whole = first >= scope.head && first + kElementsOfWarp <= scope.tail;
#pragma unroll 1
    for (int vector = 0; vector < kVectorsOfLane; vector += kAtOnce) {
      uint32_t magnitudes[kAtOnce][4];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        keys.Magnitudes(scope.base + first + VectorBegin(vector + j), magnitudes[j]);
      }
      if (!is_whole) {
#pragma unroll
        for (int j = 0; j < 4 * kAtOnce; ++j) {
          const int at = first + VectorBegin(vector + j / 4) + j % 4;
          if (!scope.Has(at)) magnitudes[j / 4][j % 4] = 0;
        }
      }
      visit(first, vector, magnitudes);
    }
    done(first);
  }
}

// The whole block calls the next functions, which end like a __syncthreads().

__device__ void Clear(uint32_t (&bins)[kBins]) {
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) bins[i] = 0;
  __syncthreads();
}

template <typename K>
__device__ void CountScope(const K& keys, const Scope& scope, const KeyRange& range,
                           uint32_t (&bins)[kBins]) {
  Clear(bins);
  const Digits digits = DigitsOf(range);
  const auto count = [&](int first, int vector, const uint32_t(&magnitudes)[kAtOnce][4]) {
#pragma unroll
    for (int j = 0; j < 4 * kAtOnce; ++j) {
      const int at = first + VectorBegin(vector + j / 4) + j % 4;
      const uint64_t key = scope.KeyOf(at, magnitudes[j / 4][j % 4]);
      if (scope.Has(at) && range.Has(key)) atomicAdd(&bins[digits.Of(key)], 1u);
    }
  };
  VisitScope(keys, scope, count, [](int) {});
  __syncthreads();
}

__device__ void CountListed(const uint64_t (&listed)[kListed], uint32_t count,
                            const KeyRange& range, uint32_t (&bins)[kBins]) {
  Clear(bins);
  const Digits digits = DigitsOf(range);
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    if (range.Has(listed[i])) atomicAdd(&bins[digits.Of(listed[i])], 1u);
  }
  __syncthreads();
}

// Range of a scope's elements by their keys.
struct OfKeys {
  __device__ OfKeys(const Scope& scope, const KeyRange& range) : scope(scope), range(range) {}
  __device__ bool is_open() const { return range.is_open(); }
  __device__ bool IsAbove(int at, uint32_t magnitude) const {
    return scope.Has(at) && scope.KeyOf(at, magnitude) >= range.upper;
  }
  __device__ bool Has(int at, uint32_t magnitude) const {
    return scope.Has(at) && range.Has(scope.KeyOf(at, magnitude));
  }
  const Scope& scope;
  const KeyRange& range;
};

// The same of a range of magnitudes above zero.
struct OfMagnitudes {
  __device__ OfMagnitudes(const Scope&, const KeyRange& range) : range(range) {}
  __device__ bool is_open() const { return true; }
  __device__ bool IsAbove(int, uint32_t magnitude) const { return magnitude >= range.upper; }
  __device__ bool Has(int, uint32_t magnitude) const {
    return magnitude >= range.lower && magnitude < range.upper;
  }
  MagnitudeRange range;
};

// Numbers of a scope's keys above a range and inside it.
struct RangeCounts {
  uint32_t above, inside;
};

// Marks the elements above the range and lists the keys in it, of which kListed have room. Sets
// *nonfinite to 1 if there is a NaN or infinity; `nonfinite` may be null.
template <typename Elements, typename K>
__device__ void MarkAndList(const K& keys, const Scope& scope, const KeyRange& range,
                            uint64_t (&listed)[kListed], RangeCounts* counts, uint32_t* kept,
                            uint32_t* nonfinite) {
  if (threadIdx.x == 0) *counts = {0, 0};
  __syncthreads();
  const Elements elements(scope, range);
  uint32_t above = 0, num_above = 0, largest = 0;
  const auto mark = [&](int first, int vector, const uint32_t(&magnitudes)[kAtOnce][4]) {
    uint32_t own_above = 0, inside = 0;
#pragma unroll
    for (int j = 0; j < 4 * kAtOnce; ++j) {
      const int at = first + VectorBegin(vector + j / 4) + j % 4;
      const uint32_t magnitude = magnitudes[j / 4][j % 4];
      if (elements.IsAbove(at, magnitude)) own_above |= 1u << j;
      if (elements.Has(at, magnitude)) inside |= 1u << j;
      largest = max(largest, magnitude);
    }
    above |= own_above << (4 * vector);
    if (!elements.is_open()) return;
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
  if (nonfinite != nullptr && largest >= kNonFiniteMagnitude) atomicOr(nonfinite, 1u);
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

// Guesses where the K-th largest of a scope lies. Returns false if the list could not hold the
// range. A sample has so many keys that the list would be about three quarters full, or a quarter
// of the scope's.
template <int kThreads, typename K>
__device__ bool Guess(const K& keys, const Scope& scope, uint64_t k, uint32_t (&bins)[kBins],
                      KeyRange* guess) {
  if constexpr (std::is_same_v<K, DrawnKeys>) {
    if (keys.support == nullptr) {
      *guess = GuessOfDraws(scope.elements(), k);
      return true;
    }
  }
  constexpr int kRound = 4 * kThreads;  // a vector of each thread
  const auto n = static_cast<float>(scope.elements());
  const float share = static_cast<float>(k) / n;
  const float most = 2 * kReachDeviations * n / (0.75f * kListed);
  const int wanted = static_cast<int>(share * (1 - share) * most * most) / kRound * kRound + kRound;
  const Sample sample(scope.base + scope.head, scope.base + scope.tail,
                      min(wanted, scope.elements() / 4));
  const Reach reach(kReachDeviations, scope.elements(), k, sample.elements());
  if (2 * reach.reach * n > 0.92f * kListed * static_cast<float>(sample.elements())) return false;
  *guess = GuessOfSample<kThreads>(keys, sample, reach, k, bins);
  return true;
}

// Marks and lists by a guess of where the K-th largest lies, in one look at all keys. Returns
// whether it lies there; *range then has what is wanted of the list. The range of a wrong guess is
// as it was, and nothing is marked.
template <typename K>
__device__ bool MarkByGuess(const K& keys, const Scope& scope, KeyRange guess, KeyRange* range,
                            uint64_t (&listed)[kListed], RangeCounts* counts, uint32_t* kept,
                            uint32_t* nonfinite) {
  MarkAndList<OfMagnitudes>(keys, scope, guess, listed, counts, kept, nonfinite);
  if (!HasKth(guess, *range, counts->above, counts->inside) || counts->inside > kListed) {
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
__global__ void __launch_bounds__(kThreads, kThreads == 1024 ? 1 : 3)
    SelectInScopeKernel(K keys, KeepRule rule, uint32_t* kept, uint32_t* nonfinite) {
  __shared__ uint32_t bins[kBins];
  __shared__ uint64_t listed[kListed];
  __shared__ RangeCounts counts;
  const Scope scope(keys.elements, keys.total);
  KeyRange range = WholeRange(rule, blockIdx.x, gridDim.x);
  KeyRange guess;
  if (!Guess<kThreads>(keys, scope, range.wanted, bins, &guess) ||
      !MarkByGuess(keys, scope, guess, &range, listed, &counts, kept, nonfinite)) {
    do {
      CountScope(keys, scope, range, bins);
      range = Pick<kThreads>(bins, range);
    } while (range.is_open() && range.inside > kListed);
    MarkAndList<OfKeys>(keys, scope, range, listed, &counts, kept, nonfinite);
  }
  while (range.is_open()) {
    CountListed(listed, counts.inside, range, bins);
    range = Pick<kThreads>(bins, range);
  }
  for (uint32_t i = threadIdx.x; i < counts.inside; i += kThreads) {
    if (listed[i] < range.upper) continue;
    const int64_t element = scope.ElementOf(listed[i]);
    atomicOr(&kept[element / 32], 1u << (element % 32));
  }
}

}  // namespace

Error SubmitSelectInScopesOfBlocks(CudaDevice* device, const Keys& keys, const KeepRule& rule,
                                   uint32_t* kept, uint32_t* nonfinite) {
  constexpr int kMost = 1024, kLeast = 256;
  // A short scope takes two rounds of the smaller block.
  const bool is_short = keys.elements <= 2 * 32 * kLeast;
  const dim3 blocks(static_cast<unsigned>(keys.scopes()));
  return WithTypedKeys(keys, [&](const auto& typed) {
    using K = std::decay_t<decltype(typed)>;
    const auto kernel = is_short ? SelectInScopeKernel<kLeast, K> : SelectInScopeKernel<kMost, K>;
    return Launch(device, blocks, dim3(is_short ? kLeast : kMost), kernel, typed, rule, kept,
                  nonfinite);
  });
}

}  // namespace thinwire
