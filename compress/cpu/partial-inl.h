// Helpers of passes over arrays: partial vectors at their end, prefetching, compression of lanes.
// Included once per SIMD target.
#if defined(THINWIRE_COMPRESS_CPU_PARTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_COMPRESS_CPU_PARTIAL_INL_H_
#undef THINWIRE_COMPRESS_CPU_PARTIAL_INL_H_
#else
#define THINWIRE_COMPRESS_CPU_PARTIAL_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Prefetches what a pass over an array reads a page after `from`. Without it a pass over 25 MiB
// took twice as long (docs/benchmarks/codecs.md). The address may lie behind the array.
template <typename T>
HWY_INLINE void PrefetchPage(const T* from) {
  constexpr uintptr_t kPageBytes = 4096;
  hwy::Prefetch(reinterpret_cast<const T*>(reinterpret_cast<uintptr_t>(from) + kPageBytes));
}

// Returns the first `n` elements at `from`, with `pad` in the lanes behind them. Any alignment.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadPart(D d, const T* from, size_t n, T pad = T{}) {
  constexpr size_t kLanes = hn::MaxLanes(d);
  if (HWY_LIKELY(n >= kLanes)) return hn::LoadU(d, from);
  HWY_ALIGN T lanes[kLanes];
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = pad;
  std::memcpy(static_cast<void*>(lanes), static_cast<const void*>(from), n * sizeof(T));
  return hn::Load(d, lanes);
}

// Stores the first `n` lanes at `to`. Any alignment.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void StorePart(hn::Vec<D> v, D d, T* to, size_t n) {
  constexpr size_t kLanes = hn::MaxLanes(d);
  if (HWY_LIKELY(n >= kLanes)) return hn::StoreU(v, d, to);
  HWY_ALIGN T lanes[kLanes];
  hn::Store(v, d, lanes);
  std::memcpy(static_cast<void*>(to), static_cast<const void*>(lanes), n * sizeof(T));
}

// Returns a mask of a vector's lanes from the lowest bits of `bits`.
template <class D>
HWY_INLINE hn::Mask<D> MaskOfBits(D d, uint64_t bits) {
  uint8_t bytes[8];
  std::memcpy(bytes, &bits, 8);
  return hn::LoadMaskBits(d, bytes);
}

// Returns the lanes of `v` that the mask names, side by side from the first lane on; the others are
// unspecified.
#if HWY_TARGET <= HWY_AVX3
template <class D>
HWY_INLINE hn::Vec<D> Compressed(hn::Vec<D> v, hn::Mask<D> mask, D) {
  return hn::Compress(v, mask);
}
#else
// Table that lists, for each set of eight lanes (as bits), its lanes in order. Highway's Compress
// puts such a table on the stack at each call.
struct LanesOfSets {
  LanesOfSets() {
    for (size_t set = 0; set < 256; ++set) {
      size_t count = 0;
      for (size_t lane = 0; lane < 8; ++lane) {
        if (set >> lane & 1) of[set][count++] = static_cast<uint8_t>(lane);
      }
    }
  }
  HWY_ALIGN uint8_t of[256][8] = {};
};

template <class D>
HWY_INLINE hn::Vec<D> Compressed(hn::Vec<D> v, hn::Mask<D> mask, D d) {
  static_assert(sizeof(hn::TFromD<D>) == 4 && hn::MaxLanes(D()) <= 8, "a byte has all lanes");
  static const LanesOfSets lanes;
  const hn::RebindToUnsigned<D> du;
  uint8_t bits[8] = {};
  hn::StoreMaskBits(d, mask, bits);
  const auto of_set = hn::LoadU(hn::Rebind<uint8_t, D>(), lanes.of[bits[0]]);
  return hn::TableLookupLanes(v, hn::IndicesFromVec(d, hn::PromoteTo(du, of_set)));
}
#endif

// Stores the lanes of `v` that the mask names side by side at `to`, and returns their number. It
// overwrites a whole vector at `to`. CompressStore need not, but Zen 4 compresses into memory
// slowly: with it, encoding topk took four times as long there.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE size_t StoreCompressed(hn::Vec<D> v, hn::Mask<D> mask, D d, T* to) {
  hn::StoreU(Compressed(v, mask, d), d, to);
  return hn::CountTrue(d, mask);
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#endif
