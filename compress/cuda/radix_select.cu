// Selection in scopes of many blocks each, by a radix select.
//
// A sample of each scope's keys (key_guess.cuh) says where the K-th largest about lies. One look at
// all elements keeps those above that range, and makes candidates of those in it: for smooth data
// one or two percent, which a bitmap names. After that only candidates are read. Each round picks a
// narrower range (key_range.cuh), keeps the candidates above it and drops those below. Two rounds
// tell most magnitudes apart; further ones are needed where magnitudes that equal the K-th largest
// are not all kept. If the guess for some scope was wrong, all begin with a count of all elements.
#include "compress/cuda/key_guess.cuh"
#include "compress/cuda/select.h"
#include "compress/cuda/word_votes.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int kGuessThreads = 1024;
constexpr int kSampled = 1 << 15;                  // most keys of a sample
constexpr float kReachDeviations = 8;              // a wrong guess costs all scopes a look
constexpr int kAtOnce = 2;                         // loads of a thread at a time
constexpr int64_t kLeastElements = kTileBits / 2;  // least elements of a scope

// Rounds behind the first pick. A digit takes 11 of a key's 63 bits, so six picks tell all keys
// apart.
constexpr int kRounds = 5;

// Elements of a block of threads, no more than a scope has, so that they lie in one scope or two.
struct Span {
  template <typename K>
  __device__ Span(const K& keys, int64_t most)
      : begin(most * blockIdx.x),
        length(static_cast<int>(min(most, keys.total - begin))),
        scope(begin / keys.elements),
        elements(keys.elements),
        boundary((scope + 1) * keys.elements),
        second(static_cast<int>(min(int64_t{length}, boundary - begin))) {}
  __device__ int num_scopes() const { return second < length ? 2 : 1; }
  // Returns which of the span's scopes, 0 or 1, element `at` is in.
  __device__ int ScopeOf(int at) const { return at >= second; }
  __device__ uint64_t KeyOf(int at, uint32_t magnitude) const {
    const int64_t end = at < second ? boundary : boundary + elements;
    return uint64_t{magnitude} << 32 | static_cast<uint64_t>(end - 1 - (begin + at));
  }
  int64_t begin;
  int length;
  int64_t scope;  // number of the first scope
  int64_t elements, boundary;
  int second;  // where the second scope begins, or the length
};

// Histograms of a span's scopes in shared memory, which are added to those in device memory.
struct Histograms {
  __device__ Histograms(uint32_t (&bins)[2 * kBins], int scopes) : bins(bins), num(scopes * kBins) {
    for (int i = threadIdx.x; i < num; i += kThreads) bins[i] = 0;
    __syncthreads();
  }
  __device__ void Add(int scope, uint32_t digit) { atomicAdd(&bins[scope * kBins + digit], 1u); }
  __device__ void AddTo(uint32_t* tables) const {
    __syncthreads();
    for (int i = threadIdx.x; i < num; i += kThreads) {
      if (bins[i] != 0) atomicAdd(&tables[i], bins[i]);
    }
  }
  uint32_t (&bins)[2 * kBins];
  int num;
};

// Guesses the ranges of scopes, a block each.
template <typename K>
__global__ void __launch_bounds__(kGuessThreads)
    GuessKernel(K keys, KeepRule rule, KeyRange* ranges) {
  __shared__ uint32_t bins[kBins];
  const int64_t begin = keys.elements * blockIdx.x, end = min(begin + keys.elements, keys.total);
  const auto k = static_cast<uint64_t>(rule.k_of(blockIdx.x, gridDim.x));
  const Sample sample(begin, end, kSampled);
  const Reach reach(kReachDeviations, end - begin, k, sample.elements());
  const KeyRange guess = GuessOfSample<kGuessThreads>(keys, sample, reach, k, bins);
  if (threadIdx.x == 0) ranges[blockIdx.x] = guess;
}

// Numbers of elements above their range, in the scopes of a span.
struct NumsAbove {
  // `above` has a bit for each of four neighbours from `at` on.
  __device__ void Add(const Span& span, int at, uint32_t above) {
    uint32_t of_first = 15;
    if (span.num_scopes() == 2) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (span.ScopeOf(at + j) != 0) of_first &= ~(1u << j);
      }
    }
    first += __popc(above & of_first);
    second += __popc(above & ~of_first);
  }
  // Adds what the block's threads have to the numbers of the span's scopes. Whole warps call it.
  __device__ void AddTo(uint32_t* num_above) const {
    const uint32_t of_first = WarpReduce<Sum>(first), of_second = WarpReduce<Sum>(second);
    if (threadIdx.x % kWarpThreads != 0) return;
    if (of_first > 0) atomicAdd(&num_above[0], of_first);
    if (of_second > 0) atomicAdd(&num_above[1], of_second);
  }
  uint32_t first = 0, second = 0;
};

// Findings of scopes, in device memory.
struct ScopeWork {
  KeyRange* ranges;
  uint32_t* num_above;  // elements above the guessed range
  uint32_t* tables;     // kBins numbers of keys by digit; zeros between picks
};

// Ranges of a span's scopes, in shared memory.
struct RangesOfSpan {
  // The whole block calls it, and then synchronises.
  __device__ void Load(const KeyRange* of_scopes, const Span& span) {
    const int i = static_cast<int>(threadIdx.x);
    if (i >= span.num_scopes()) return;
    ranges[i] = of_scopes[span.scope + i];
    digits[i] = DigitsOf(ranges[i]);
  }
  KeyRange ranges[2];
  Digits digits[2];
};

// Looks at all elements: keeps those above their scope's range, makes candidates of those in it and
// counts their digits. Unless kSplits, four neighbours from a multiple of four on never lie in two
// scopes. Does nothing if *wanted is 0; `wanted` may be null.
template <bool kSplits, typename K>
__global__ void __launch_bounds__(kThreads, 4)
    FindCandidatesKernel(K keys, int64_t most, const uint32_t* wanted, ScopeWork work,
                         uint32_t* candidates, uint32_t* kept, uint32_t* nonfinite) {
  __shared__ uint32_t bins[2 * kBins];
  __shared__ RangesOfSpan own;
  if (wanted != nullptr && *wanted == 0) return;
  const Span span(keys, most);
  own.Load(work.ranges, span);
  Histograms histograms(bins, span.num_scopes());
  const MagnitudeRange low(own.ranges[0]), high(own.ranges[span.num_scopes() - 1]);
  NumsAbove num_above;
  uint32_t largest = 0;
  const int warp = static_cast<int>(threadIdx.x / kWarpThreads);
  for (int first = warp * kElementsOfWarp; first < span.length; first += 32 * kThreads) {
    uint32_t above = 0, inside = 0;
#pragma unroll 1
    for (int vector = 0; vector < kVectorsOfLane; vector += kAtOnce) {
      uint32_t magnitudes[kAtOnce][4];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        keys.Magnitudes(span.begin + first + VectorBegin(vector + j), magnitudes[j]);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int of_vector = first + VectorBegin(vector + j);
        uint32_t own_above = 0, own_inside = 0;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int at = of_vector + k, scope = span.ScopeOf(kSplits ? at : of_vector);
          const uint32_t lower = scope == 0 ? low.lower : high.lower;
          const uint32_t upper = scope == 0 ? low.upper : high.upper;
          const uint32_t magnitude = magnitudes[j][k];
          largest = max(largest, magnitude);
          if (at >= span.length) continue;
          if (magnitude >= upper) own_above |= 1u << k;
          if (magnitude < lower || magnitude >= upper) continue;
          own_inside |= 1u << k;
          const uint64_t key = span.KeyOf(at, magnitude);
          histograms.Add(scope, own.digits[scope].Of(key));
        }
        num_above.Add(span, of_vector, own_above);
        above |= own_above << (4 * (vector + j));
        inside |= own_inside << (4 * (vector + j));
      }
    }
    const uint32_t own_kept = WordOfVotes(above), own_candidates = WordOfVotes(inside);
    const int word = first / 32 + WordOfLane();
    if (word * 32 >= span.length) continue;
    kept[span.begin / 32 + word] = own_kept;
    candidates[span.begin / 32 + word] = own_candidates;
  }
  if (nonfinite != nullptr && largest >= kNonFiniteMagnitude) atomicOr(nonfinite, 1u);
  num_above.AddTo(work.num_above + span.scope);
  histograms.AddTo(work.tables + span.scope * kBins);
}

// Sets the range of the block's scope, and its table to zeros. *is_open becomes 1 if it has
// candidates.
__device__ void SetRange(const KeyRange& range, const ScopeWork& work, uint32_t* is_open) {
  uint32_t* const table = work.tables + int64_t{blockIdx.x} * kBins;
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) table[i] = 0;
  if (threadIdx.x != 0) return;
  if (range.is_open()) atomicOr(is_open, 1u);
  work.ranges[blockIdx.x] = range;
}

// Picks in open ranges, with a block per scope. Does nothing if *wanted is 0.
__global__ void PickKernel(ScopeWork work, const uint32_t* wanted, uint32_t* is_open) {
  if (*wanted == 0) return;
  const KeyRange range = work.ranges[blockIdx.x];
  if (!range.is_open()) return;
  SetRange(Pick<kThreads>(work.tables + int64_t{blockIdx.x} * kBins, range), work, is_open);
}

// Picks in guessed ranges. *is_wrong becomes 1 if the K-th largest of some scope is not in its
// range.
__global__ void PickGuessedKernel(ScopeWork work, KeepRule rule, uint32_t* is_wrong,
                                  uint32_t* is_open) {
  const uint32_t* const table = work.tables + int64_t{blockIdx.x} * kBins;
  const KeyRange whole = WholeRange(rule, blockIdx.x, gridDim.x);
  KeyRange guess = work.ranges[blockIdx.x];
  const uint64_t above = work.num_above[blockIdx.x];
  const uint64_t inside = OwnBins<kThreads>(table).total;
  if (!HasKth(guess, whole, above, inside) && threadIdx.x == 0) atomicOr(is_wrong, 1u);
  KeyRange picked = {guess.upper, guess.upper, 0, 0};
  if (above < guess.wanted) {
    guess.wanted -= above;
    picked = Pick<kThreads>(table, guess);
  }
  SetRange(picked, work, is_open);
}

// Sets the ranges to all keys if some guess is wrong.
__global__ void StartOverKernel(ScopeWork work, int64_t scopes, KeepRule rule,
                                const uint32_t* is_wrong) {
  const int64_t scope = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (*is_wrong == 0 || scope >= scopes) return;
  work.ranges[scope] = WholeRange(rule, scope, scopes);
}

// Counts the digits of all elements. Does nothing if *wanted is 0.
template <typename K>
__global__ void CountAllKernel(K keys, int64_t most, const uint32_t* wanted, ScopeWork work) {
  __shared__ uint32_t bins[2 * kBins];
  __shared__ RangesOfSpan own;
  if (*wanted == 0) return;
  const Span span(keys, most);
  own.Load(work.ranges, span);
  Histograms histograms(bins, span.num_scopes());
  for (int first = 4 * threadIdx.x; first < span.length; first += 4 * kThreads) {
    uint32_t magnitudes[4];
    keys.Magnitudes(span.begin + first, magnitudes);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int at = first + j, scope = span.ScopeOf(at);
      const uint64_t key = span.KeyOf(at, magnitudes[j]);
      if (at >= span.length || !own.ranges[scope].Has(key)) continue;
      histograms.Add(scope, own.digits[scope].Of(key));
    }
  }
  histograms.AddTo(work.tables + span.scope * kBins);
}

// Narrows the candidates, a word of them per thread. Those above the range are kept, those below it
// are candidates no more. Does nothing if *wanted is 0; `wanted` may be null. After the last pick
// nothing is counted.
template <typename K>
__global__ void NarrowKernel(K keys, int64_t most, bool is_last, const uint32_t* wanted,
                             ScopeWork work, uint32_t* candidates, uint32_t* kept) {
  __shared__ uint32_t bins[2 * kBins];
  __shared__ RangesOfSpan own;
  if (wanted != nullptr && *wanted == 0) return;
  const Span span(keys, most);
  own.Load(work.ranges, span);
  Histograms histograms(bins, span.num_scopes());
  for (int first = threadIdx.x; first * 32 < span.length; first += kThreads) {
    const int64_t word = span.begin / 32 + first;
    const uint32_t before = candidates[word];
    uint32_t own_kept = 0, own_candidates = 0;
    // `left &= left - 1` clears the lowest set bit, `left & (~left + 1)` is that bit alone: the
    // loop visits the set bits from the lowest up.
    for (uint32_t left = before; left != 0; left &= left - 1) {
      const int at = first * 32 + __ffs(static_cast<int>(left)) - 1;
      const uint32_t bit = left & (~left + 1);
      const int scope = span.ScopeOf(at);
      const uint64_t key = span.KeyOf(at, keys.Magnitude(span.begin + at));
      if (key >= own.ranges[scope].upper) {
        own_kept |= bit;
      } else if (key >= own.ranges[scope].lower) {
        own_candidates |= bit;
        if (!is_last) histograms.Add(scope, own.digits[scope].Of(key));
      }
    }
    if (own_kept != 0) kept[word] |= own_kept;
    if (own_candidates != before) candidates[word] = own_candidates;
  }
  if (!is_last) histograms.AddTo(work.tables + span.scope * kBins);
}

// Returns the most elements of a block: whole rounds of its threads, no more than a scope has, and
// enough blocks for every multiprocessor.
int64_t SpanOf(const Keys& keys, const CudaDevice& device) {
  int64_t span = kLeastElements;
  while (2 * span <= keys.elements &&
         (span < kTileBits || keys.total / (2 * span) >= 8 * device.multiprocessors())) {
    span *= 2;
  }
  return span;
}

// Memory of one selection.
class Selection {
 public:
  explicit Selection(CudaDevice* device) : device_(device) {}
  Error Reserve(const Keys& keys) {
    const auto scopes = static_cast<size_t>(keys.scopes());
    RETURN_ERROR(ranges_.Reserve(sizeof(KeyRange) * scopes));
    RETURN_ERROR(candidates_.Reserve(BitmapBytes(keys.total)));
    RETURN_ERROR(nums_above_.ReserveZeros(4 * scopes));
    RETURN_ERROR(tables_.ReserveZeros(4 * scopes * kBins));
    return flags_.ReserveZeros(4 * (kRounds + 2));
  }
  ScopeWork work() const {
    return {ranges_.as<KeyRange>(), nums_above_.as<uint32_t>(), tables_.as<uint32_t>()};
  }
  uint32_t* candidates() const { return candidates_.as<uint32_t>(); }
  uint32_t* is_wrong() const { return flags_.as<uint32_t>(); }
  // Whether candidates are left before the round.
  uint32_t* is_open(int round) const { return flags_.as<uint32_t>() + 1 + round; }

 private:
  CudaDevice* const device_;
  CudaScratch ranges_{device_}, nums_above_{device_}, tables_{device_};
  CudaScratch candidates_{device_}, flags_{device_};
};

template <typename K>
Error SubmitOf(CudaDevice* device, const Keys& all, const K& keys, const KeepRule& rule,
               uint32_t* kept, uint32_t* nonfinite) {
  Selection own(device);
  RETURN_ERROR(own.Reserve(all));
  const ScopeWork work = own.work();
  const int64_t scopes = all.scopes(), span = SpanOf(all, *device);
  const dim3 blocks = BlocksFor(all.total, span), threads(kThreads),
             of_scopes = BlocksFor(scopes, 1);
  const auto find =
      all.elements % 4 == 0 ? FindCandidatesKernel<false, K> : FindCandidatesKernel<true, K>;
  const auto submit_find = [&](const uint32_t* wanted) {
    return Launch(device, blocks, threads, find, keys, span, wanted, work, own.candidates(), kept,
                  nonfinite);
  };
  const auto submit_pick = [&](const uint32_t* wanted, int round) {
    return Launch(device, of_scopes, threads, PickKernel, work, wanted, own.is_open(round));
  };
  const auto submit_narrow = [&](const uint32_t* wanted, bool is_last) {
    return Launch(device, blocks, threads, NarrowKernel<K>, keys, span, is_last, wanted, work,
                  own.candidates(), kept);
  };
  RETURN_ERROR(
      Launch(device, of_scopes, dim3(kGuessThreads), GuessKernel<K>, keys, rule, work.ranges));
  RETURN_ERROR(submit_find(nullptr));
  RETURN_ERROR(Launch(device, of_scopes, threads, PickGuessedKernel, work, rule, own.is_wrong(),
                      own.is_open(0)));

  RETURN_ERROR(Launch(device, BlocksFor(scopes, kThreads), threads, StartOverKernel, work, scopes,
                      rule, own.is_wrong()));
  RETURN_ERROR(
      Launch(device, blocks, threads, CountAllKernel<K>, keys, span, own.is_wrong(), work));
  RETURN_ERROR(submit_pick(own.is_wrong(), 0));
  RETURN_ERROR(submit_find(own.is_wrong()));
  RETURN_ERROR(submit_pick(own.is_wrong(), 0));

  RETURN_ERROR(submit_narrow(nullptr, /*is_last=*/false));
  for (int round = 1; round <= kRounds; ++round) {
    RETURN_ERROR(submit_pick(own.is_open(round - 1), round));
    RETURN_ERROR(submit_narrow(own.is_open(round - 1), round == kRounds));
  }
  return Error{};
}

}  // namespace

Error SubmitSelectInLargeScopes(CudaDevice* device, const Keys& keys, const KeepRule& rule,
                                uint32_t* kept, uint32_t* nonfinite) {
  return WithTypedKeys(keys, [&](const auto& typed) {
    return SubmitOf(device, keys, typed, rule, kept, nonfinite);
  });
}

}  // namespace thinwire
