#include "compress/cuda/keys.cuh"
#include "compress/cuda/radix_select.h"
#include "compress/cuda/word_votes.cuh"
#include "tensor/cuda/launch.h"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int kAtOnce = 4;  // loads of a thread at a time
constexpr int kFirstBits = 12;
constexpr int kBins = 1 << kFirstBits;
constexpr int64_t kLeastElements = kTileBits / 2;  // least elements of a scope
constexpr uint32_t kFirstNonFiniteBin = kNonFiniteMagnitude >> (31 - kFirstBits);
constexpr uint64_t kLeastNonZero = uint64_t{1} << 32;  // least key of magnitude bits 1

// Level of the search: the bits of a key that are its digit.
struct Level {
  int shift;
  int bits;
  __device__ uint32_t Digit(uint64_t key) const {
    return static_cast<uint32_t>(key >> shift) & ((1u << bits) - 1);
  }
  // Returns the digit of a level whose bits are all in the magnitude.
  __device__ uint32_t DigitOfMagnitude(uint32_t magnitude) const {
    return (magnitude >> (shift - 32)) & ((1u << bits) - 1);
  }
};
constexpr Level kNoLevel = {0, 0};

// Range of keys: those from `upper` on are kept, and so are the `wanted` largest of those in
// [lower, upper).
struct Range {
  uint64_t lower, upper, wanted;
};

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

// Makes the first level's histograms. `most` is the number of elements per block.
template <typename K>
__global__ void CountAllKernel(K keys, int64_t most, bool zeros, Level level, uint32_t* tables) {
  __shared__ uint32_t bins[2 * kBins];
  const Span span(keys, most);
  Histograms histograms(bins, span.num_scopes());
  for (int first = 4 * threadIdx.x; first < span.length; first += 4 * kAtOnce * kThreads) {
    uint32_t magnitudes[kAtOnce][4];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      keys.Magnitudes(span.begin + first + 4 * j * kThreads, magnitudes[j]);
    }
#pragma unroll
    for (int j = 0; j < 4 * kAtOnce; ++j) {
      const int at = first + 4 * (j / 4) * kThreads + j % 4;
      const uint32_t magnitude = magnitudes[j / 4][j % 4];
      if (at >= span.length || (magnitude == 0 && !zeros)) continue;
      histograms.Add(span.ScopeOf(at), level.DigitOfMagnitude(magnitude));
    }
  }
  histograms.AddTo(tables + span.scope * kBins);
}

// Finds the digit of the K-th largest, with a block per scope, and clears the histogram for the
// next level. *undecided becomes 1 if candidates are left. Each thread sums some bins from the top;
// the prefix sum over threads tells which one passes `wanted`.
__global__ void PickKernel(uint32_t* tables, Range* ranges, Level level, uint32_t* undecided) {
  constexpr int kEach = kBins / kThreads;
  const Range range = ranges[blockIdx.x];
  if (range.lower == range.upper) return;
  uint32_t* const table = tables + int64_t{blockIdx.x} * kBins;
  const int top = kBins - 1 - static_cast<int>(threadIdx.x) * kEach;
  uint32_t counts[kEach], sum = 0, total;
  for (int j = 0; j < kEach; ++j) {
    counts[j] = table[top - j];
    table[top - j] = 0;
    sum += counts[j];
  }
  uint32_t above = BlockExclusiveSum(sum, &total);
  if (total < range.wanted) {  // without zeros there are fewer: all are kept
    if (threadIdx.x == 0) ranges[blockIdx.x] = {range.lower, range.lower, 0};
    return;
  }
  if (range.wanted <= above || range.wanted > uint64_t{above} + sum) return;
  int j = 0;
  for (; uint64_t{above} + counts[j] < range.wanted; ++j) above += counts[j];
  const int higher = level.shift + level.bits;
  const uint64_t prefix = range.lower >> higher << higher;
  const uint64_t digit = static_cast<uint64_t>(top - j);
  Range next;
  next.lower = max(range.lower, prefix + (digit << level.shift));
  next.upper = prefix + ((digit + 1) << level.shift);
  next.wanted = range.wanted - above;
  if (next.wanted == counts[j]) next.upper = next.lower;
  if (next.lower < next.upper) atomicOr(undecided, 1u);
  ranges[blockIdx.x] = next;
}

// Sets the ranges before the first level, and looks for NaN and infinity in its histogram.
__global__ void StartKernel(const uint32_t* tables, Range* ranges, int64_t scopes, KeepRule rule,
                            uint32_t* nonfinite) {
  const int64_t scope = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (scope >= scopes) return;
  ranges[scope] = {rule.zeros ? 0 : kLeastNonZero, uint64_t{1} << 63,
                   static_cast<uint64_t>(rule.k_of(scope, scopes))};
  if (nonfinite == nullptr) return;
  for (uint32_t bin = kFirstNonFiniteBin; bin < kBins; ++bin) {
    if (tables[scope * kBins + bin] != 0) atomicOr(nonfinite, 1u);
  }
}

// Range of a scope after the first level, which does not distinguish indices.
struct MagnitudeRange {
  __device__ explicit MagnitudeRange(const Range& range)
      : lower(static_cast<uint32_t>(range.lower >> 32)),
        upper(static_cast<uint32_t>(range.upper >> 32)) {}
  uint32_t lower, upper;
};

// Looks at all elements after the first level: keeps those above their scope's range, makes
// candidates of those in it and counts their digits. Unless kSplits, four neighbours from a
// multiple of four on never lie in two scopes.
template <bool kSplits, typename K>
__global__ void __launch_bounds__(kThreads, 4)
    FindCandidatesKernel(K keys, int64_t most, const Range* ranges, Level level, uint32_t* tables,
                         uint32_t* candidates, uint32_t* kept) {
  __shared__ uint32_t bins[2 * kBins];
  const Span span(keys, most);
  const MagnitudeRange low(ranges[span.scope]), high(ranges[span.scope + span.num_scopes() - 1]);
  Histograms histograms(bins, span.num_scopes());
  const int warp = static_cast<int>(threadIdx.x / kWarpThreads);
  for (int first = warp * kElementsOfWarp; first < span.length; first += 32 * kThreads) {
    uint32_t above = 0, inside = 0;
#pragma unroll 1
    for (int vector = 0; vector < kVectorsOfLane; vector += kAtOnce) {
      uint32_t magnitudes[kAtOnce][4], own_above = 0, own_inside = 0;
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        keys.Magnitudes(span.begin + first + VectorBegin(vector + j), magnitudes[j]);
      }
#pragma unroll
      for (int j = 0; j < 4 * kAtOnce; ++j) {
        const int of_vector = first + VectorBegin(vector + j / 4), at = of_vector + j % 4;
        const int scope = span.ScopeOf(kSplits ? at : of_vector);
        const uint32_t lower = scope == 0 ? low.lower : high.lower;
        const uint32_t upper = scope == 0 ? low.upper : high.upper;
        const uint32_t magnitude = magnitudes[j / 4][j % 4];
        const bool is_above = at < span.length && magnitude >= upper;
        const bool is_inside = at < span.length && magnitude >= lower && magnitude < upper;
        if (is_above) own_above |= 1u << j;
        if (is_inside) own_inside |= 1u << j;
        if (is_inside) histograms.Add(scope, level.DigitOfMagnitude(magnitude));
      }
      above |= own_above << (4 * vector);
      inside |= own_inside << (4 * vector);
    }
    const uint32_t own_kept = WordOfVotes(above), own_candidates = WordOfVotes(inside);
    const int word = first / 32 + WordOfLane();
    if (word * 32 >= span.length) continue;
    kept[span.begin / 32 + word] = own_kept;
    candidates[span.begin / 32 + word] = own_candidates;
  }
  histograms.AddTo(tables + span.scope * kBins);
}

// Narrows the candidates, a word of them per thread. Those above the range are kept, those below it
// are candidates no more. Does nothing if *wanted is 0, because there are none. A `level` without
// bits is the end: nothing is counted for a next one.
template <typename K>
__global__ void NarrowKernel(K keys, int64_t most, const Range* ranges, Level level,
                             const uint32_t* wanted, uint32_t* tables, uint32_t* candidates,
                             uint32_t* kept) {
  __shared__ uint32_t bins[2 * kBins];
  if (*wanted == 0) return;
  const Span span(keys, most);
  const Range low = ranges[span.scope], high = ranges[span.scope + span.num_scopes() - 1];
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
      if (key >= (scope == 0 ? low.upper : high.upper)) {
        own_kept |= bit;
      } else if (key >= (scope == 0 ? low.lower : high.lower)) {
        own_candidates |= bit;
        if (level.bits > 0) histograms.Add(scope, level.Digit(key));
      }
    }
    if (own_kept != 0) kept[word] |= own_kept;
    if (own_candidates != before) candidates[word] = own_candidates;
  }
  if (level.bits > 0) histograms.AddTo(tables + span.scope * kBins);
}

// Writes the levels that distinguish keys and returns their number: indices within a scope have
// ceil(log2 elements) bits, and bf16 magnitudes end in 16 zeros.
int LevelsOf(const Keys& keys, Level* levels) {
  int count = 0;
  levels[count++] = {63 - kFirstBits, kFirstBits};
  levels[count++] = {41, 10};
  if (keys.dtype == DType::kF32) levels[count++] = {32, 9};
  if (keys.elements > int64_t{1} << 21) levels[count++] = {21, 11};
  levels[count++] = {10, 11};
  levels[count++] = {0, 10};
  return count;
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
struct Work {
  explicit Work(CudaDevice* device)
      : table_memory(device), range_memory(device), candidate_memory(device), flag_memory(device) {}
  Error Reserve(const Keys& keys, int levels, cudaStream_t stream) {
    const int64_t scopes = keys.scopes();
    const size_t table_bytes = 4 * static_cast<size_t>(scopes) * kBins;
    RETURN_ERROR(table_memory.Reserve(table_bytes));
    RETURN_ERROR(range_memory.Reserve(sizeof(Range) * scopes));
    RETURN_ERROR(candidate_memory.Reserve(BitmapBytes(keys.total)));
    RETURN_ERROR(flag_memory.Reserve(4 * levels));
    CUDA_RETURN_IF_ERROR(cudaMemsetAsync(tables(), 0, table_bytes, stream));
    CUDA_RETURN_IF_ERROR(cudaMemsetAsync(undecided(), 0, 4 * levels, stream));
    return Error{};
  }
  uint32_t* tables() const { return table_memory.as<uint32_t>(); }
  Range* ranges() const { return range_memory.as<Range>(); }
  uint32_t* candidates() const { return candidate_memory.as<uint32_t>(); }
  uint32_t* undecided() const { return flag_memory.as<uint32_t>(); }

  CudaScratch table_memory, range_memory, candidate_memory, flag_memory;
};

template <typename K>
Error SubmitOf(CudaDevice* device, cudaStream_t stream, const Keys& all, const K& keys,
               const KeepRule& rule, uint32_t* kept, uint32_t* nonfinite) {
  Level levels[6];
  const int num_levels = LevelsOf(all, levels);
  Work work(device);
  RETURN_ERROR(work.Reserve(all, num_levels, stream));
  const int64_t scopes = all.scopes(), span = SpanOf(all, *device);
  const dim3 blocks = BlocksFor(all.total, span), threads(kThreads);
  const auto find =
      all.elements % 4 == 0 ? FindCandidatesKernel<false, K> : FindCandidatesKernel<true, K>;
  RETURN_ERROR(Launch(stream, blocks, threads, CountAllKernel<K>, keys, span, rule.zeros, levels[0],
                      work.tables()));
  RETURN_ERROR(Launch(stream, BlocksFor(scopes, kThreads), threads, StartKernel, work.tables(),
                      work.ranges(), scopes, rule, nonfinite));
  for (int i = 0; i < num_levels; ++i) {
    RETURN_ERROR(Launch(stream, dim3(static_cast<unsigned>(scopes)), threads, PickKernel,
                        work.tables(), work.ranges(), levels[i], work.undecided() + i));
    const Level next = i + 1 < num_levels ? levels[i + 1] : kNoLevel;
    if (i == 0) {
      RETURN_ERROR(Launch(stream, blocks, threads, find, keys, span, work.ranges(), next,
                          work.tables(), work.candidates(), kept));
    } else {
      RETURN_ERROR(Launch(stream, blocks, threads, NarrowKernel<K>, keys, span, work.ranges(), next,
                          work.undecided() + i - 1, work.tables(), work.candidates(), kept));
    }
  }
  return Error{};
}

}  // namespace

Error SubmitSelectInLargeScopes(CudaDevice* device, cudaStream_t stream, const Keys& keys,
                                const KeepRule& rule, uint32_t* kept, uint32_t* nonfinite) {
  return WithTypedKeys(keys, [&](const auto& typed) {
    return SubmitOf(device, stream, keys, typed, rule, kept, nonfinite);
  });
}

}  // namespace thinwire
