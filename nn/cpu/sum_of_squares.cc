#include <algorithm>
#include <vector>

#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/sum_of_squares.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kSums = 32;

// Keeps 32 sums, whatever the vector length, so that all instruction sets add in the same order.
double SumOfBlock(const float* values, int64_t n) {
  constexpr hn::CappedTag<double, kSums> d;
  const hn::Rebind<float, decltype(d)> d32;
  constexpr size_t kLanes = hn::MaxLanes(d), kVectors = kSums / kLanes;
  hn::Vec<decltype(d)> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + static_cast<int64_t>(kSums) <= n; i += kSums) {
    for (size_t k = 0; k < kVectors; ++k) {
      const auto v = hn::PromoteTo(d, hn::LoadU(d32, values + i + k * kLanes));
      sums[k] = hn::Add(sums[k], hn::Mul(v, v));
    }
  }
  HWY_ALIGN double of_lane[kSums];
  for (size_t k = 0; k < kVectors; ++k) hn::Store(sums[k], d, of_lane + k * kLanes);
  for (size_t k = 0; i < n; ++i, ++k) {
    of_lane[k] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  double sum = 0;
  for (double s : of_lane) sum += s;
  return sum;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(SumOfBlock);

namespace cpu {
namespace {

constexpr int64_t kBlock = 8192;  // elements

}  // namespace

double SumOfSquares(int threads, const float* values, int64_t n) {
  std::vector<double> of_blocks((n + kBlock - 1) / kBlock);
  ParallelFor(threads, static_cast<int64_t>(of_blocks.size()), [&](int64_t b) {
    of_blocks[b] =
        HWY_DYNAMIC_DISPATCH(SumOfBlock)(values + b * kBlock, std::min(kBlock, n - b * kBlock));
  });
  double sum = 0;
  for (double of_block : of_blocks) sum += of_block;
  return sum;
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
