#include "compress/entropy/stretches.h"

#include <algorithm>

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/entropy/stretches.cc"
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

// Transposes 16 rows of 16 bytes: row i of `from` becomes column i of `to`. Four times the first
// half of the rows is interleaved with the second, byte by byte, like cards in a perfect shuffle.
// Each time the eight bits of a byte's place, four of its row and four of its column, rotate by
// one.
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

// Bytes taken from each stretch at a time: a cache line. Stretches may lie a multiple of a cache
// way apart and evict each other's lines, so each line is used up at once.
constexpr size_t kLine = 64;

// Returns whether all stretches, the last one too, have a whole line from their byte j on.
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

namespace {

// Calls use(place among the bytes, place among the rows, count) for each stretch's bytes in a row.
template <typename Use>
void ForEachPiece(size_t n, size_t width, const Use& use) {
  const size_t num_rows = NumRows(n);
  for (size_t t = 0; t < kStates / width; ++t) {
    for (size_t j = 0; j < num_rows; ++j) {
      const size_t at = std::min((t * num_rows + j) * width, n);
      use(at, j * kStates + t * width, std::min(width, n - at));
    }
  }
}

// Calls use(first byte, count) for each part; its rows begin where its bytes do.
template <typename Use>
void ForEachPart(size_t n, const RowLayout& layout, const Use& use) {
  for (size_t part = 0; part < layout.num_parts; ++part) {
    const size_t begin = layout.PartBegin(NumRows(n), part) * kStates;
    const size_t end = std::min(n, layout.PartBegin(NumRows(n), part + 1) * kStates);
    use(begin, end - begin);
  }
}

}  // namespace

void ToRows(const uint8_t* bytes, size_t n, size_t width, uint8_t* rows) {
  if (width == 1) return HWY_DYNAMIC_DISPATCH(ToRowsImpl)(bytes, n, rows);
  ForEachPiece(n, width, [&](size_t at, size_t to, size_t count) {
    std::copy_n(bytes + at, count, rows + to);
    std::fill_n(rows + to + count, width - count, 0);
  });
}

void FromRows(const uint8_t* rows, size_t n, size_t width, uint8_t* bytes) {
  if (width == 1) return HWY_DYNAMIC_DISPATCH(FromRowsImpl)(rows, n, bytes);
  ForEachPiece(n, width, [&](size_t at, size_t from, size_t count) {
    std::copy_n(rows + from, count, bytes + at);
  });
}

void ToRows(const uint8_t* bytes, size_t n, const RowLayout& layout, uint8_t* rows) {
  ForEachPart(n, layout, [&](size_t begin, size_t count) {
    ToRows(bytes + begin, count, layout.width, rows + begin);
  });
}

void FromRows(const uint8_t* rows, size_t n, const RowLayout& layout, uint8_t* bytes) {
  ForEachPart(n, layout, [&](size_t begin, size_t count) {
    FromRows(rows + begin, count, layout.width, bytes + begin);
  });
}

void SumsOfNeighbours(const Neighbours& neighbours, const RowLayout& layout, const uint8_t* rows,
                      size_t num_rows, uint8_t* sums) {
  ForEachPart(num_rows * kStates, layout, [&](size_t begin, size_t count) {
    SumsOfNeighbours(neighbours, rows + begin, 0, count / kStates, sums + begin);
  });
}

}  // namespace thinwire
#endif  // HWY_ONCE
