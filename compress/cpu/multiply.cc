#include <algorithm>

#include "compress/cpu/blocks.h"
#include "compress/cpu/operations.h"
#include "compress/cpu/parallel.h"
#include "compress/scratch.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/multiply.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

#ifndef THINWIRE_COMPRESS_CPU_MULTIPLY_CC_
#define THINWIRE_COMPRESS_CPU_MULTIPLY_CC_
namespace thinwire {

constexpr size_t kBlockRows = 4;   // rows whose sums are in registers at once
constexpr size_t kChunkRows = 64;  // rows for which a panel of the factor is read once

// Rows of the factor that a block of rows needs. Those for which x is zero in all rows of the block
// are left out.
struct UsedRows {
  const uint32_t* rows;
  size_t count;
};

// Arguments of a product: `rows` rows of k elements times a factor of k rows of n elements.
struct Chunk {
  const float* x;
  size_t rows, k;
  const float* factor;
  size_t n;
  float* out;
  const UsedRows* used;  // one per block
};

}  // namespace thinwire
#endif  // THINWIRE_COMPRESS_CPU_MULTIPLY_CC_

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F32 = hn::ScalableTag<float>;
constexpr size_t kLanes = hn::MaxLanes(F32());
constexpr size_t kPanel = 2 * kLanes;  // columns of a panel

// Copies columns [c, c + kPanel) of the factor into consecutive memory, with zeros behind the last.
HWY_INLINE void PackPanel(const Chunk& chunk, size_t c, float* HWY_RESTRICT panel) {
  const F32 d;
  const size_t n = chunk.n - c;
  for (size_t j = 0; j < chunk.k; ++j) {
    const float* const row = chunk.factor + j * chunk.n + c;
    hn::StoreU(LoadPart(d, row, n), d, panel + j * kPanel);
    hn::StoreU(n > kLanes ? LoadPart(d, row + kLanes, n - kLanes) : hn::Zero(d), d,
               panel + j * kPanel + kLanes);
  }
}

// Multiplies kBlockRows rows from `first` on by a panel: eight sums stay in registers, and a
// panel's row is loaded once for four rows. Rows behind the last repeat it.
HWY_INLINE void MultiplyBlock(const Chunk& chunk, size_t first, const float* HWY_RESTRICT panel,
                              size_t c) {
  const F32 d;
  const size_t rows = HWY_MIN(kBlockRows, chunk.rows - first);
  const float* x[kBlockRows];
  for (size_t r = 0; r < kBlockRows; ++r) {
    x[r] = chunk.x + (first + HWY_MIN(r, rows - 1)) * chunk.k;
  }
  const UsedRows used = chunk.used[first / kBlockRows];
  auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  for (size_t i = 0; i < used.count; ++i) {
    const size_t j = used.rows[i];
    const auto a = hn::LoadU(d, panel + j * kPanel);
    const auto b = hn::LoadU(d, panel + j * kPanel + kLanes);
    const auto x0 = hn::Set(d, x[0][j]), x1 = hn::Set(d, x[1][j]);
    const auto x2 = hn::Set(d, x[2][j]), x3 = hn::Set(d, x[3][j]);
    a0 = hn::Add(a0, hn::Mul(x0, a));
    b0 = hn::Add(b0, hn::Mul(x0, b));
    a1 = hn::Add(a1, hn::Mul(x1, a));
    b1 = hn::Add(b1, hn::Mul(x1, b));
    a2 = hn::Add(a2, hn::Mul(x2, a));
    b2 = hn::Add(b2, hn::Mul(x2, b));
    a3 = hn::Add(a3, hn::Mul(x3, a));
    b3 = hn::Add(b3, hn::Mul(x3, b));
  }
  const hn::Vec<F32> sums[kBlockRows][2] = {{a0, b0}, {a1, b1}, {a2, b2}, {a3, b3}};
  const size_t n = chunk.n - c;
  for (size_t r = 0; r < rows; ++r) {
    float* const to = chunk.out + (first + r) * chunk.n + c;
    StorePart(sums[r][0], d, to, n);
    if (n > kLanes) StorePart(sums[r][1], d, to + kLanes, n - kLanes);
  }
}

// Multiplies a chunk of rows. `panel` is memory for k rows of 2 vectors.
void MultiplyChunkImpl(const Chunk& chunk, float* panel) {
  for (size_t c = 0; c < chunk.n; c += kPanel) {
    PackPanel(chunk, c, panel);
    for (size_t first = 0; first < chunk.rows; first += kBlockRows) {
      MultiplyBlock(chunk, first, panel, c);
    }
  }
}

size_t PanelColumnsImpl() { return kPanel; }

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(MultiplyChunkImpl);
HWY_EXPORT(PanelColumnsImpl);

namespace {

constexpr size_t kMostBlocks = kChunkRows / kBlockRows;

// Writes to `rows` which factor rows the block from row `first` on needs. Returns the end. The
// store is unconditional; only the pointer's step depends on the data, so there is no branch to
// mispredict.
uint32_t* FindUsed(const Chunk& chunk, size_t first, uint32_t* rows) {
  const size_t last = std::min(first + kBlockRows, chunk.rows);
  for (size_t j = 0; j < chunk.k; ++j) {
    bool is_used = false;
    for (size_t i = first; i < last; ++i) is_used |= chunk.x[i * chunk.k + j] != 0;
    *rows = static_cast<uint32_t>(j);
    rows += is_used;
  }
  return rows;
}

void MultiplyChunk(Chunk chunk) {
  static thread_local Scratch<uint32_t> used_memory;
  static thread_local Scratch<float> panel_memory;
  UsedRows used[kMostBlocks];
  uint32_t* rows = used_memory.Get(kMostBlocks * chunk.k + 1);
  for (size_t first = 0; first < chunk.rows; first += kBlockRows) {
    uint32_t* const end = FindUsed(chunk, first, rows);
    used[first / kBlockRows] = {rows, static_cast<size_t>(end - rows)};
    rows = end;
  }
  chunk.used = used;
  const size_t columns = HWY_DYNAMIC_DISPATCH(PanelColumnsImpl)();
  HWY_DYNAMIC_DISPATCH(MultiplyChunkImpl)(chunk, panel_memory.Get(chunk.k * columns));
}

}  // namespace

Error CpuKernels::Multiply(const TensorView& x, const TensorView& factor, const TensorView& out) {
  const int64_t k = factor.dims[0], n = factor.dims[1];
  if (out.elements() == 0) return Error{};
  const Parts parts(out.elements(), threads_, n);
  ForEachPart(parts, [&](int, int64_t begin, int64_t end) {
    static thread_local Scratch<float> x_memory, out_memory;
    float* const x_scratch = x_memory.Get(kChunkRows * k);
    float* const out_scratch = out_memory.Get(kChunkRows * n);
    for (int64_t row = begin / n; row < end / n; row += kChunkRows) {
      const auto rows = std::min<int64_t>(kChunkRows, end / n - row);
      float* const to = FloatsToWrite(out, row * n, out_scratch);
      MultiplyChunk({ReadFloats(x, row * k, rows * k, x_scratch), static_cast<size_t>(rows),
                     static_cast<size_t>(k), static_cast<const float*>(factor.data),
                     static_cast<size_t>(n), to, nullptr});
      FinishFloats(out, row * n, rows * n, out_scratch);
    }
  });
  return Error{};
}

}  // namespace thinwire
#endif  // HWY_ONCE
