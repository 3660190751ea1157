#include "compress/cpu/select.h"

#include <cstring>

#include "compress/cpu/parallel.h"
#include "compress/cpu/scan.h"
#include "compress/half.h"
#include "compress/scratch.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/select.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
constexpr size_t kLanes = hn::MaxLanes(F32());

HWY_INLINE hn::Vec<I32> Magnitudes(hn::Vec<F32> x) {
  return hn::And(hn::BitCast(I32(), x), hn::Set(I32(), 0x7FFFFFFF));
}

// Counts the magnitudes of at least `threshold` in x[0, n). Requires threshold > 0. As signed
// integers magnitudes are ordered like the values. "> threshold - 1" stands for ">=", which integer
// vectors of x86 lack before AVX-512.
size_t CountAtLeastImpl(const float* HWY_RESTRICT x, size_t n, uint32_t threshold) {
  const auto below = hn::Set(I32(), static_cast<int32_t>(threshold - 1));
  size_t count = 0;
  size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (size_t j = 0; j < 4; ++j) {
      const auto m = Magnitudes(hn::LoadU(F32(), x + i + j * kLanes));
      count += hn::CountTrue(I32(), hn::Gt(m, below));
    }
  }
  for (; i < n; i += kLanes) {
    const auto m = Magnitudes(LoadPart(F32(), x + i, n - i));
    count += hn::CountTrue(I32(), hn::Gt(m, below));
  }
  return count;
}

// Writes the elements with magnitudes in [from, to) to `out`. Requires from > 0 and memory for
// kCollectSlack more.
size_t CollectBetweenImpl(const float* HWY_RESTRICT x, size_t n, uint32_t from, uint32_t to,
                          float* HWY_RESTRICT out) {
  const auto below = hn::Set(I32(), static_cast<int32_t>(from - 1));
  const auto end = hn::Set(I32(), static_cast<int32_t>(to));
  size_t count = 0;
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(x + i);
    const auto v = LoadPart(F32(), x + i, n - i);
    const auto m = Magnitudes(v);
    const auto inside = hn::And(hn::Gt(m, below), hn::Lt(m, end));
    count += StoreCompressed(v, hn::RebindMask(F32(), inside), F32(), out + count);
  }
  return count;
}

// Thresholds of elements [i, i + left): one for all, or one each.
struct OneThreshold {
  HWY_INLINE hn::Vec<I32> At(size_t, size_t) const { return threshold; }
  hn::Vec<I32> threshold;
};
struct ManyThresholds {
  HWY_INLINE hn::Vec<I32> At(size_t i, size_t left) const {
    return hn::BitCast(I32(), LoadPart(U32(), thresholds + i, left));
  }
  const uint32_t* thresholds;
};

template <class Thresholds>
HWY_INLINE size_t Collect(const float* HWY_RESTRICT x, size_t n, const Thresholds& thresholds,
                          uint32_t base, float* HWY_RESTRICT values,
                          uint32_t* HWY_RESTRICT positions) {
  const U32 u;
  auto position = hn::Iota(u, base);
  size_t count = 0;
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(x + i);
    const auto v = LoadPart(F32(), x + i, n - i);
    // m + 1 > threshold means m >= threshold, for a threshold of 0 too. Lanes behind the end, which
    // are zeros, then need a mask.
    auto kept = hn::Gt(hn::Add(Magnitudes(v), hn::Set(I32(), 1)), thresholds.At(i, n - i));
    if (HWY_UNLIKELY(n - i < kLanes)) kept = hn::And(kept, hn::FirstN(I32(), n - i));
    StoreCompressed(position, hn::RebindMask(u, kept), u, positions + count);
    count += StoreCompressed(v, hn::RebindMask(F32(), kept), F32(), values + count);
    position = hn::Add(position, hn::Set(u, kLanes));
  }
  return count;
}

size_t CollectAtLeastImpl(const float* x, size_t n, uint32_t threshold, uint32_t base,
                          float* values, uint32_t* positions) {
  const OneThreshold one = {hn::Set(I32(), static_cast<int32_t>(threshold))};
  return Collect(x, n, one, base, values, positions);
}

size_t CollectAtLeastEachImpl(const float* x, size_t n, const uint32_t* thresholds, uint32_t base,
                              float* values, uint32_t* positions) {
  return Collect(x, n, ManyThresholds{thresholds}, base, values, positions);
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(CountAtLeastImpl);
HWY_EXPORT(CollectBetweenImpl);
HWY_EXPORT(CollectAtLeastImpl);
HWY_EXPORT(CollectAtLeastEachImpl);

namespace {

// Largest array that is selected from without a histogram, which would cost more than it saves.
constexpr size_t kSmall = 4096;

// Buckets of the histogram: the upper 11 bits of a magnitude (exponent and 3 bits of fraction).
constexpr uint32_t kBucketShift = 20;
constexpr uint32_t kNumBuckets = 1u << (31 - kBucketShift);
constexpr uint32_t kFirstNonFiniteBucket = kInfinityBits >> kBucketShift;

size_t CountAtLeast(const float* x, size_t n, uint32_t threshold, int threads) {
  return SumOfParts(Parts(n, threads), [&](int64_t begin, int64_t end) {
    return HWY_DYNAMIC_DISPATCH(CountAtLeastImpl)(x + begin, end - begin, threshold);
  });
}

// Finds the k-th largest of magnitudes that all have the bits `prefix` above bit `num_bits`. Tries
// its bits from the highest, and keeps each that leaves at least k elements. Requires 1 <= k <= n.
Selection SelectByBits(const float* x, size_t n, size_t k, uint32_t prefix, uint32_t num_bits,
                       int threads) {
  Selection s;
  s.threshold = prefix;
  size_t at_least = n;
  for (uint32_t bit = num_bits; bit-- > 0 && at_least != k;) {
    const uint32_t higher = s.threshold | (1u << bit);
    const size_t count = CountAtLeast(x, n, higher, threads);
    if (count >= k) {
      s.threshold = higher;
      at_least = count;
    }
  }
  s.all_ties = at_least == k;
  if (!s.all_ties) s.num_ties = k - CountAtLeast(x, n, s.threshold + 1, threads);
  return s;
}

Selection SelectSmall(const float* x, size_t n, size_t k, uint32_t largest) {
  Selection s;
  s.finite = largest < kInfinityBits;
  if (!s.finite) return s;
  uint32_t num_bits = 0;
  while (num_bits < 31 && (largest >> num_bits) != 0) ++num_bits;
  return SelectByBits(x, n, k, 0, num_bits, /*threads=*/1);
}

// Histogram of magnitudes. Neighbours are counted in different tables, so that equal ones (zeros)
// do not wait for each other's increments.
struct Histogram {
  static constexpr size_t kTables = 4;
  uint32_t tables[kTables][kNumBuckets];

  void Count(const float* x, size_t n) {
    std::memset(tables, 0, sizeof(tables));
    size_t i = 0;
    for (; i + kTables <= n; i += kTables) {
      __builtin_prefetch(x + i + 1024);
      for (size_t t = 0; t < kTables; ++t) ++tables[t][BucketOf(x[i + t])];
    }
    for (; i < n; ++i) ++tables[0][BucketOf(x[i])];
  }
  static uint32_t BucketOf(float x) { return (BitsOf(x) & kMagnitudeMask) >> kBucketShift; }
  size_t operator[](uint32_t bucket) const {
    size_t sum = 0;
    for (const auto& table : tables) sum += table[bucket];
    return sum;
  }
};

// Histograms of the parts of an array, in memory of this thread that the next object reuses.
class Histograms {
 public:
  Histograms(const float* x, const Parts& parts) : count_(parts.count()) {
    static thread_local Scratch<Histogram> memory;
    of_parts_ = memory.Get(count_);
    ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
      of_parts_[part].Count(x + begin, end - begin);
    });
  }
  const Histogram& of(int part) const { return of_parts_[part]; }
  size_t operator[](uint32_t bucket) const {
    size_t sum = 0;
    for (int part = 0; part < count_; ++part) sum += of_parts_[part][bucket];
    return sum;
  }

 private:
  Histogram* of_parts_;
  int count_;
};

// Elements of x in `bucket`, without zeros, which no bit tells apart. The memory is this thread's
// until its next call.
struct Candidates {
  float* values = nullptr;
  size_t count = 0;
};
Candidates CollectBucket(const float* x, const Parts& parts, const Histograms& histograms,
                         uint32_t bucket) {
  static thread_local Scratch<float> memory;
  const uint32_t from = bucket << kBucketShift;
  Candidates all;
  all.values = memory.Get(histograms[bucket] + parts.count() * kCollectSlack);
  size_t starts[Parts::kMost + 1] = {}, counts[Parts::kMost];
  for (int part = 0; part < parts.count(); ++part) {
    starts[part + 1] = starts[part] + histograms.of(part)[bucket] + kCollectSlack;
  }
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    counts[part] = HWY_DYNAMIC_DISPATCH(CollectBetweenImpl)(
        x + begin, end - begin, from > 0 ? from : 1, from + (1u << kBucketShift),
        all.values + starts[part]);
  });
  for (int part = 0; part < parts.count(); ++part) {
    std::memmove(all.values + all.count, all.values + starts[part], 4 * counts[part]);
    all.count += counts[part];
  }
  return all;
}

Selection SelectByHistogram(const float* x, size_t n, size_t k, int threads) {
  const Parts parts(n, threads);
  const Histograms histogram(x, parts);
  Selection s;
  uint32_t bucket = kNumBuckets - 1;
  size_t above = 0;
  for (; above + histogram[bucket] < k; --bucket) above += histogram[bucket];
  for (uint32_t b = kFirstNonFiniteBucket; b < kNumBuckets; ++b) s.finite &= histogram[b] == 0;
  if (!s.finite) return s;

  const Candidates candidates = CollectBucket(x, parts, histogram, bucket);  // it holds the K-th
  const size_t wanted = k - above;
  if (candidates.count < wanted) {
    s.all_ties = k == n;
    s.num_ties = wanted - candidates.count;
    return s;
  }
  s = SelectByBits(candidates.values, candidates.count, wanted, bucket << kBucketShift,
                   kBucketShift, threads);
  if (s.threshold == 0) s.threshold = 1;  // keep all candidates, but no zeros
  return s;
}

// Finds what FindNthOfMagnitude does, on one thread.
size_t FindNthInOrder(const float* x, size_t n, uint32_t magnitude, size_t nth) {
  size_t i = 0;
  for (; i < n; ++i) {
    nth -= (BitsOf(x[i]) & kMagnitudeMask) == magnitude;
    if (nth == 0) break;
  }
  return i;
}

}  // namespace

Selection SelectLargest(const float* x, size_t n, size_t k, int threads) {
  if (n <= kSmall) return SelectSmall(x, n, k, LargestMagnitude(x, n));
  return SelectByHistogram(x, n, k, threads);
}

size_t FindNthOfMagnitude(const float* x, size_t n, uint32_t magnitude, size_t nth, int threads) {
  const Parts parts(n, threads);
  if (parts.count() == 1 || magnitude == 0) return FindNthInOrder(x, n, magnitude, nth);
  size_t counts[Parts::kMost];
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) {
    counts[part] = CountAtLeast(x + begin, end - begin, magnitude, /*threads=*/1) -
                   CountAtLeast(x + begin, end - begin, magnitude + 1, /*threads=*/1);
  });
  int part = 0;
  for (; counts[part] < nth; ++part) nth -= counts[part];
  const int64_t begin = parts.begin(part);
  return begin + FindNthInOrder(x + begin, parts.end(part) - begin, magnitude, nth);
}

size_t CollectAtLeast(const float* x, size_t n, uint32_t threshold, uint32_t base, float* values,
                      uint32_t* positions) {
  return HWY_DYNAMIC_DISPATCH(CollectAtLeastImpl)(x, n, threshold, base, values, positions);
}

size_t CollectAtLeastEach(const float* x, size_t n, const uint32_t* thresholds, uint32_t base,
                          float* values, uint32_t* positions) {
  return HWY_DYNAMIC_DISPATCH(CollectAtLeastEachImpl)(x, n, thresholds, base, values, positions);
}

}  // namespace thinwire
#endif  // HWY_ONCE
