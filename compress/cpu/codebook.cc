#include "compress/cpu/codebook.h"

#include <cassert>
#include <cmath>
#include <cstring>

#include "compress/cpu/half.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/codebook.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

// The search for the nearest value is a look at the upper bits of |t| and one comparison.
//
// A magnitude has a rank p from 0 (zero) to 128 (one). The floats from 2^-22 to 1 fall into buckets
// of equal upper 15 bits (exponent and six bits of fraction), small enough that at most one limit
// between two ranks lies in each. A bucket's entry is (p << 17) + (2^17 - 1 - the lower 17 bits of
// that limit) with p its least rank: adding the lower 17 bits of |t| carries into the rank iff they
// are above the limit's.
#ifndef THINWIRE_COMPRESS_CPU_CODEBOOK_BUCKETS_
#define THINWIRE_COMPRESS_CPU_CODEBOOK_BUCKETS_
namespace thinwire {
namespace {

constexpr int kLowBits = 17;
constexpr int32_t kLowMask = (1 << kLowBits) - 1;
constexpr int32_t kLeastBits = (127 - 22) << 23;  // of 2^-22, still nearest to zero
constexpr int32_t kOneBits = 127 << 23;
constexpr int32_t kFirstBucket = kLeastBits >> kLowBits;
constexpr int32_t kNumBuckets = (kOneBits >> kLowBits) - kFirstBucket + 1;

// Of positive values, then of negative ones, whose ties go to the larger magnitude.
struct Buckets {
  int32_t entries[2 * kNumBuckets];
};

}  // namespace
}  // namespace thinwire
#endif

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U8 = hn::Rebind<uint8_t, F32>;
constexpr size_t kLanes = hn::MaxLanes(F32());

void NearestCodesImpl(const float* HWY_RESTRICT x, size_t n, float absmax,
                      const int32_t* HWY_RESTRICT entries, uint8_t* HWY_RESTRICT codes) {
  const F32 f;
  const I32 s;
  const auto unit = hn::Set(f, absmax);
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(x + i);
    const auto t = hn::Div(LoadPart(f, x + i, n - i), unit);
    const auto negative = hn::ShiftRight<31>(hn::BitCast(s, t));  // -1 or 0
    const auto bits = hn::Max(hn::BitCast(s, hn::Abs(t)), hn::Set(s, kLeastBits));
    const auto bucket = hn::Add(hn::Sub(hn::ShiftRight<kLowBits>(bits), hn::Set(s, kFirstBucket)),
                                hn::And(negative, hn::Set(s, kNumBuckets)));
    const auto entry = hn::GatherIndex(s, entries, bucket);
    const auto low = hn::And(bits, hn::Set(s, kLowMask));
    const auto rank = hn::ShiftRight<kLowBits>(hn::Add(entry, low));
    const auto signed_rank = hn::Sub(hn::Xor(rank, negative), negative);
    const auto code = hn::Add(signed_rank, hn::Set(s, kZeroCode));
    StorePart(hn::DemoteTo(U8(), code), U8(), codes + i, n - i);
  }
}

void ValuesOfCodesImpl(const uint8_t* HWY_RESTRICT codes, size_t n, float absmax,
                       const float* HWY_RESTRICT values, float* HWY_RESTRICT x) {
  const F32 f;
  const I32 s;
  const auto unit = hn::Set(f, absmax);
  for (size_t i = 0; i < n; i += kLanes) {
    const auto code = hn::PromoteTo(s, LoadPart(U8(), codes + i, n - i));
    StorePart(hn::Mul(hn::GatherIndex(f, values, code), unit), f, x + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(NearestCodesImpl);
HWY_EXPORT(ValuesOfCodesImpl);

namespace {

// The last float for which `rank` is nearer than the next rank, ties counted by the sign.
uint32_t LimitBits(const std::array<float, 256>& values, int rank, bool negative) {
  const float* magnitudes = &values[kZeroCode];
  // Exact: neighbours are so close that their sum fits fp64.
  const double middle = (static_cast<double>(magnitudes[rank]) + magnitudes[rank + 1]) / 2;
  uint32_t bits = BitsOf(static_cast<float>(middle));
  while (FloatOf(bits) > middle || (negative && FloatOf(bits) == middle)) --bits;
  return bits;
}

Buckets NewBuckets() {
  const std::array<float, 256> values = CodebookValues();
  Buckets buckets;
  for (bool negative : {false, true}) {
    const int most = negative ? 127 : 128;  // -1 has no entry
    int rank = 0;
    for (int32_t b = 0; b < kNumBuckets; ++b) {
      const uint32_t end = static_cast<uint32_t>(kFirstBucket + b + 1) << kLowBits;
      int32_t entry = rank << kLowBits;
      if (rank < most && LimitBits(values, rank, negative) < end) {
        const uint32_t limit = LimitBits(values, rank++, negative);
        entry += kLowMask - static_cast<int32_t>(limit & kLowMask);
        assert(rank == most || LimitBits(values, rank, negative) >= end);
      }
      buckets.entries[(negative ? kNumBuckets : 0) + b] = entry;
    }
  }
  return buckets;
}

}  // namespace

std::array<float, 256> CodebookValues() {
  std::array<float, 256> values;
  values[kZeroCode] = 0;
  values[255] = 1;
  int rank = 1;
  float power_of_ten = 1e7f;
  for (int i = 0; i < 7; ++i, power_of_ten /= 10) {
    const float parts = static_cast<float>(2 << i);
    for (int j = 0; j < 1 << i; ++j, ++rank) {
      const float value = (parts + static_cast<float>(9 * (2 * j + 1))) / (parts * power_of_ten);
      values[kZeroCode + rank] = value;
      values[kZeroCode - rank] = -value;
    }
  }
  return values;
}

void NearestCodes(const float* x, size_t n, float absmax, uint8_t* codes) {
  static const Buckets buckets = NewBuckets();
  if (absmax == 0) {
    std::memset(codes, kZeroCode, n);
    return;
  }
  HWY_DYNAMIC_DISPATCH(NearestCodesImpl)(x, n, absmax, buckets.entries, codes);
}
void ValuesOfCodes(const uint8_t* codes, size_t n, float absmax, float* x) {
  static const std::array<float, 256> values = CodebookValues();
  HWY_DYNAMIC_DISPATCH(ValuesOfCodesImpl)(codes, n, absmax, values.data(), x);
}

}  // namespace thinwire
#endif  // HWY_ONCE
