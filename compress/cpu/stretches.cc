#include "compress/cpu/stretches.h"

#include <algorithm>

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/stretches.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
constexpr size_t kBlock = 16;
static_assert(kStates % kBlock == 0, "a row is whole blocks");
using U8 = hn::FixedTag<uint8_t, kBlock>;
using Row = hn::Vec<U8>;

// Row i of `from` becomes column i of `to`. Four times the first half of the rows is shuffled with
// the second, as cards are, byte by byte: each time the bits of a byte's place, four of its row and
// four of its column, turn by one.
HWY_INLINE void Transpose(const uint8_t* HWY_RESTRICT from, size_t from_stride,
                          uint8_t* HWY_RESTRICT to, size_t to_stride) {
  constexpr size_t kHalf = kBlock / 2;
  Row a[kBlock], b[kBlock];
  for (size_t i = 0; i < kBlock; ++i) a[i] = hn::LoadU(U8(), from + i * from_stride);
  const auto shuffle = [](const Row* HWY_RESTRICT x, Row* HWY_RESTRICT y) HWY_ATTR {
    for (size_t i = 0; i < kHalf; ++i) {
      y[2 * i] = hn::InterleaveLower(U8(), x[i], x[i + kHalf]);
      y[2 * i + 1] = hn::InterleaveUpper(U8(), x[i], x[i + kHalf]);
    }
  };
  shuffle(a, b);
  shuffle(b, a);
  shuffle(a, b);
  shuffle(b, a);
  for (size_t i = 0; i < kBlock; ++i) hn::StoreU(a[i], U8(), to + i * to_stride);
}

// Stretches may lie a multiple of a cache's ways apart, so that their lines are in each other's
// way: a line of each is used up at a time.
constexpr size_t kLine = 64;

// Whether all stretches have a line more from their byte j on, the last one too.
bool HasLine(size_t j, size_t n) { return (kStates - 1) * NumRows(n) + j + kLine <= n; }

void ToRowsImpl(const uint8_t* bytes, size_t n, uint8_t* rows) {
  const size_t length = NumRows(n);
  size_t j = 0;
  for (; HasLine(j, n); j += kLine) {
    for (size_t s = 0; s < kStates; s += kBlock) {
      for (size_t i = j; i < j + kLine; i += kBlock) {
        Transpose(bytes + s * length + i, length, rows + i * kStates + s, kStates);
      }
    }
  }
  for (; j < length; ++j) {
    for (size_t s = 0; s < kStates; ++s) {
      const size_t i = s * length + j;
      rows[j * kStates + s] = i < n ? bytes[i] : 0;
    }
  }
}

void FromRowsImpl(const uint8_t* rows, size_t n, uint8_t* bytes) {
  const size_t length = NumRows(n);
  size_t j = 0;
  for (; HasLine(j, n); j += kLine) {
    for (size_t s = 0; s < kStates; s += kBlock) {
      for (size_t i = j; i < j + kLine; i += kBlock) {
        Transpose(rows + i * kStates + s, kStates, bytes + s * length + i, length);
      }
    }
  }
  for (; j < length; ++j) {
    for (size_t s = 0; s < kStates; ++s) {
      const size_t i = s * length + j;
      if (i < n) bytes[i] = rows[j * kStates + s];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(ToRowsImpl);
HWY_EXPORT(FromRowsImpl);

void ToRows(const uint8_t* bytes, size_t n, uint8_t* rows) {
  HWY_DYNAMIC_DISPATCH(ToRowsImpl)(bytes, n, rows);
}
void FromRows(const uint8_t* rows, size_t n, uint8_t* bytes) {
  HWY_DYNAMIC_DISPATCH(FromRowsImpl)(rows, n, bytes);
}

}  // namespace thinwire
#endif  // HWY_ONCE
