#include "compress/cpu/sum_of_squares.h"

#include <algorithm>

#include "compress/cpu/blocks.h"
#include "compress/cpu/parallel.h"
#include "compress/scratch.h"

// Each SIMD target compiles this file once more, from foreach_target.h on.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/cpu/sum_of_squares.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "compress/cpu/partial-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using F64 = hn::CappedTag<double, kSquareLanes>;
using F32 = hn::Rebind<float, F64>;
constexpr int64_t kLanes = hn::MaxLanes(F64()), kVectors = kSquareLanes / kLanes;

// Sums the squares of one stretch in kSquareLanes lanes, then the lanes in order.
double SumOfStretchImpl(const float* HWY_RESTRICT x, int64_t n) {
  hn::Vec<F64> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(F64());
  int64_t i = 0;
  for (; i + kSquareLanes <= n; i += kSquareLanes) {
    PrefetchPage(x + i);
    for (int64_t v = 0; v < kVectors; ++v) {
      const auto value = hn::PromoteTo(F64(), hn::LoadU(F32(), x + i + v * kLanes));
      sums[v] = hn::Add(sums[v], hn::Mul(value, value));
    }
  }
  HWY_ALIGN double lanes[kSquareLanes];
  for (int64_t v = 0; v < kVectors; ++v) hn::Store(sums[v], F64(), lanes + v * kLanes);
  for (; i < n; ++i) lanes[i % kSquareLanes] += double{x[i]} * double{x[i]};
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {

HWY_EXPORT(SumOfStretchImpl);

static_assert(kSquareStretch == kBlock, "a stretch is read as one block");

double SumOfSquares(const TensorView& x, int64_t begin, int64_t n, int threads) {
  static thread_local Scratch<double> memory;
  const int64_t num_stretches = (n + kSquareStretch - 1) / kSquareStretch;
  double* const stretches = memory.Get(num_stretches);
  ForEachPart(Parts(n, threads, kSquareStretch), [&](int, int64_t first, int64_t last) {
    ReadBlocks(x, begin + first, begin + last, [&](int64_t i, size_t length, const float* values) {
      stretches[(i - begin) / kSquareStretch] =
          HWY_DYNAMIC_DISPATCH(SumOfStretchImpl)(values, static_cast<int64_t>(length));
    });
  });
  double sum = 0;
  for (int64_t i = 0; i < num_stretches; ++i) sum += stretches[i];
  return sum;
}

}  // namespace thinwire
#endif  // HWY_ONCE
