// Rows of rANS states in vectors, and the neighbours of a row's bytes. Included once per SIMD
// target.
#if defined(THINWIRE_COMPRESS_CPU_RANS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_COMPRESS_CPU_RANS_ROWS_INL_H_
#undef THINWIRE_COMPRESS_CPU_RANS_ROWS_INL_H_
#else
#define THINWIRE_COMPRESS_CPU_RANS_ROWS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "compress/entropy/rans.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using U32 = hn::CappedTag<uint32_t, 16>;
using I32 = hn::RebindToSigned<U32>;
using F32 = hn::Rebind<float, U32>;
using U16 = hn::Rebind<uint16_t, U32>;
using U8 = hn::Rebind<uint8_t, U32>;
using Words = hn::Vec<U32>;
constexpr size_t kLanes = hn::MaxLanes(U32());
static_assert(kStates % kLanes == 0, "a row is whole vectors");
constexpr size_t kVectors = kStates / kLanes;

// Vector of a row's bytes, and the sums of the neighbours of those from `lane` on. The vector is no
// wider than what the decoder stores at once, so that a row can be loaded as soon as it is decoded
// (store forwarding). AverageRound with zero gives half of a code, rounded up: its magnitude.
constexpr size_t kRowCap = kLanes < 16 ? kStates : 16;
using Row = hn::CappedTag<uint8_t, kRowCap>;
constexpr size_t kRowLanes = hn::MaxLanes(Row());
HWY_INLINE hn::Vec<Row> SumOfNeighbours(const Neighbours& neighbours, const uint8_t* bytes,
                                        size_t row, size_t lane) {
  const Row d;
  auto sum = hn::Zero(d);
  for (int k = 0; k < neighbours.count; ++k) {
    if (neighbours.rows[k] > row) continue;
    const auto code = hn::LoadU(d, bytes + (row - neighbours.rows[k]) * kStates + lane);
    sum = hn::SaturatedAdd(sum, hn::AverageRound(code, hn::Zero(d)));
  }
  return hn::Min(sum, hn::Set(d, kSums - 1));
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#endif
