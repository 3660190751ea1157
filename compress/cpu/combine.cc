#include "compress/cpu/operations.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/combine.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

#include <algorithm>

#include "compress/cpu/blocks.h"
#include "compress/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// Computes to = a x + b y for n elements. `to` may be x or y: a vector is read before it is
// written.
void CombineImpl(float a, const float* x, float b, const float* y, size_t n, bool zero_nonfinite,
                 float* to) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto of_x = hn::Set(d, a), of_y = hn::Set(d, b);
  for (size_t i = 0; i < n; i += kLanes) {
    PrefetchPage(x + i);
    PrefetchPage(y + i);
    const auto left = hn::Mul(of_x, LoadPart(d, x + i, n - i));
    const auto right = hn::Mul(of_y, LoadPart(d, y + i, n - i));
    const auto sum = hn::Add(left, right);
    const auto kept = zero_nonfinite ? hn::IfThenElseZero(hn::IsFinite(sum), sum) : sum;
    StorePart(kept, d, to + i, n - i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(CombineImpl);

namespace {

// Returns row i, flat, without data if it has no memory.
TensorView RowAt(const RowsView& rows, int64_t i, int64_t elements) {
  const void* data = rows.each == nullptr ? nullptr : rows.each[i];
  if (rows.data != nullptr) {
    data = static_cast<uint8_t*>(rows.data) + i * elements * SizeOf(rows.dtype);
  }
  return ViewOf(data, rows.dtype, {elements});
}

// Returns elements of a row as floats; zeros if the row has no memory.
const float* ReadOrZeros(const TensorView& row, int64_t begin, size_t n, float* scratch) {
  if (row.data != nullptr) return ReadFloats(row, begin, n, scratch);
  std::fill_n(scratch, n, 0.0f);
  return scratch;
}

// Combines elements [begin, end) of row `row`.
void CombineRow(const RowSums& sums, int64_t row, int64_t begin, int64_t end) {
  const TensorView x = RowAt(sums.x, row, sums.elements), y = RowAt(sums.y, row, sums.elements);
  const TensorView out = RowAt(sums.out, row, sums.elements);
  const TensorView also = RowAt(sums.also, row, sums.elements);
  alignas(64) float x_scratch[kBlock], y_scratch[kBlock], out_scratch[kBlock];
  ForEachBlock(begin, end, [&](int64_t i, size_t n) {
    const float* from = ReadOrZeros(x, i, n, x_scratch);
    const float* other = ReadOrZeros(y, i, n, y_scratch);
    const auto write = [&](const TensorView& to, bool zero_nonfinite) {
      if (to.data == nullptr) return;
      HWY_DYNAMIC_DISPATCH(CombineImpl)
      (sums.a, from, sums.b, other, n, zero_nonfinite, FloatsToWrite(to, i, out_scratch));
      FinishFloats(to, i, n, out_scratch);
    };
    write(also, false);  // before `out`, which may be x or y
    write(out, sums.zero_nonfinite);
  });
}

}  // namespace

Error CpuKernels::CombineRows(const RowSums& sums) {
  const int64_t total = sums.count * sums.elements;
  ForEachPart(Parts(total, threads_), [&](int, int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t row = begin / sums.elements, first = row * sums.elements;
      const int64_t row_end = std::min(end, first + sums.elements);
      CombineRow(sums, row, begin - first, row_end - first);
      begin = row_end;
    }
  });
  return Error{};
}

}  // namespace thinwire
#endif  // HWY_ONCE
