// Passes over arrays: vectors at their end, memory asked for ahead of time. Included once per SIMD
// target.
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

// Asks for what a pass over an array reads a page after `from`. Without it a pass over 25 MiB took
// twice as long (docs/benchmarks/codecs.md). The address may lie behind the array.
template <typename T>
HWY_INLINE void PrefetchPage(const T* from) {
  constexpr uintptr_t kPageBytes = 4096;
  hwy::Prefetch(reinterpret_cast<const T*>(reinterpret_cast<uintptr_t>(from) + kPageBytes));
}

// The first `n` elements at `from`, `pad` in the lanes behind them. Any alignment.
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

// The mask of as many lanes as a vector has, from the lowest bits of `bits`.
template <class D>
HWY_INLINE hn::Mask<D> MaskOfBits(D d, uint64_t bits) {
  uint8_t bytes[8];
  std::memcpy(bytes, &bits, 8);
  return hn::LoadMaskBits(d, bytes);
}

// Stores the lanes of `v` that the mask names, one behind the other, and returns how many.
// Overwrites a whole vector at `to`. CompressStore need not, but Zen 4 compresses into memory
// slowly: with it, encoding topk took four times as long there.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE size_t StoreCompressed(hn::Vec<D> v, hn::Mask<D> mask, D d, T* to) {
  hn::StoreU(hn::Compress(v, mask), d, to);
  return hn::CountTrue(d, mask);
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#endif
