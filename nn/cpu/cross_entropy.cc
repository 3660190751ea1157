#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/cross_entropy.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/exp-inl.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// Returns the greatest logit of the row. A NaN counts only in first place, as nothing compares
// greater than it.
template <typename T>
HWY_INLINE float Greatest(const T* logits, int64_t classes) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  const float first = LoadOne(logits);
  FloatVec most = hn::Set(d, first);
  int64_t c = 0;
  for (; c + lanes <= classes; c += lanes) {
    const FloatVec v = LoadFloats(d, logits + c);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  }
  HWY_ALIGN float of_lane[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(most, d, of_lane);
  float greatest = first;
  for (int64_t i = 0; i < lanes; ++i) greatest = of_lane[i] > greatest ? of_lane[i] : greatest;
  for (; c < classes; ++c)
    greatest = LoadOne(logits + c) > greatest ? LoadOne(logits + c) : greatest;
  return greatest;
}

// Sets exponentials[c] = exp(logits[c] - greatest), with zeros up to a whole vector. Returns their
// sum.
template <typename T>
HWY_INLINE double Exponentials(const T* logits, int64_t classes, float greatest,
                               double* exponentials) {
  const FloatTag d32;
  const hn::Half<FloatTag> half;
  const DoubleTag d;
  const int64_t lanes = hn::Lanes(d);
  const DoubleVec shift = hn::Set(d, static_cast<double>(greatest));
  ForEachVector(classes, [&](const auto& access, int64_t c) HWY_ATTR {
    const FloatVec v = access.Load(d32, logits + c);
    const DoubleVec lower = hn::PromoteTo(d, hn::LowerHalf(half, v));
    const DoubleVec upper = hn::PromoteTo(d, hn::UpperHalf(half, v));
    hn::StoreU(Exponential(d, hn::Sub(lower, shift)), d, exponentials + c);
    hn::StoreU(Exponential(d, hn::Sub(upper, shift)), d, exponentials + c + lanes);
  });
  const int64_t padded = (classes + 2 * lanes - 1) / (2 * lanes) * 2 * lanes;
  for (int64_t c = classes; c < padded; ++c) exponentials[c] = 0;
  DoubleVec even = hn::Zero(d), odd = hn::Zero(d);
  for (int64_t c = 0; c < padded; c += 2 * lanes) {
    even = hn::Add(even, hn::LoadU(d, exponentials + c));
    odd = hn::Add(odd, hn::LoadU(d, exponentials + c + lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
}

// Sets dlogits[c] = factor exponentials[c]; exponentials has whole vectors.
template <typename T>
HWY_INLINE void Scaled(const double* exponentials, double factor, int64_t classes, T* dlogits) {
  const FloatTag d32;
  const hn::Half<FloatTag> half;
  const DoubleTag d;
  const int64_t lanes = hn::Lanes(d);
  ForEachVector(classes, [&](const auto& access, int64_t c) HWY_ATTR {
    const DoubleVec lower = hn::Mul(hn::LoadU(d, exponentials + c), hn::Set(d, factor));
    const DoubleVec upper = hn::Mul(hn::LoadU(d, exponentials + c + lanes), hn::Set(d, factor));
    access.Store(hn::Combine(d32, hn::DemoteTo(half, upper), hn::DemoteTo(half, lower)), d32,
                 dlogits + c);
  });
}

template <typename T>
void IgnoreRow(const CrossEntropy& a, int64_t row, double* loss, bool* correct) {
  *loss = 0;
  *correct = false;
  if (a.dlogits.data == nullptr) return;
  std::fill_n(static_cast<T*>(a.dlogits.data) + row * a.logits.dims[1], a.logits.dims[1], T{});
}

template <typename T>
void LossOfRow(const CrossEntropy& a, int64_t row, double* exponentials, double* loss,
               bool* correct) {
  const int64_t classes = a.classes, elements = a.logits.dims[1], label = a.labels[row];
  if (label < 0) return IgnoreRow<T>(a, row, loss, correct);
  const T* const logits = static_cast<const T*>(a.logits.data) + row * elements;
  const float greatest = Greatest(logits, classes);
  int64_t top = 0;
  while (top < classes && LoadOne(logits + top) != greatest) ++top;
  *correct = label == (top < classes ? top : 0);  // no logit equals a NaN
  const double sum = Exponentials(logits, classes, greatest, exponentials);
  *loss =
      std::log(sum) + static_cast<double>(greatest) - static_cast<double>(LoadOne(logits + label));
  if (a.dlogits.data == nullptr) return;
  T* const dlogits = static_cast<T*>(a.dlogits.data) + row * elements;
  const double batch_size = static_cast<double>(a.batch_size);
  Scaled(exponentials, 1 / (sum * batch_size), classes, dlogits);
  StoreOne(static_cast<float>((exponentials[label] / sum - 1) / batch_size), dlogits + label);
  std::fill(dlogits + classes, dlogits + elements, T{});
}

// Computes rows [begin, end); `exponentials` has room for a row in whole vectors.
void LossOfRows(const CrossEntropy& a, int64_t begin, int64_t end, double* exponentials,
                double* losses, bool* correct) {
  for (int64_t row = begin; row < end; ++row) {
    a.logits.dtype == DType::kF32
        ? LossOfRow<float>(a, row, exponentials, losses + row, correct + row)
        : LossOfRow<uint16_t>(a, row, exponentials, losses + row, correct + row);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(LossOfRows);

namespace cpu {
namespace {

constexpr int64_t kGrain = 4 * 1024;  // elements; with fewer, one thread is faster
constexpr int64_t kMostLanes = 16;    // lanes of an fp32 vector: AVX-512's

}  // namespace

Error Kernels::SoftmaxCrossEntropy(const CrossEntropy& a, LossSums* sums) {
  const int64_t rows = a.logits.dims[0], classes = a.classes;
  std::vector<double> losses(rows);
  const auto are_correct = std::make_unique<bool[]>(rows);
  ParallelRange(threads_, rows, kGrain / classes, [&](int64_t begin, int64_t end) {
    std::vector<double> exponentials(classes + kMostLanes);
    HWY_DYNAMIC_DISPATCH(LossOfRows)
    (a, begin, end, exponentials.data(), losses.data(), are_correct.get());
  });
  *sums = LossSums{};
  for (int64_t row = 0; row < rows; ++row) {
    sums->loss += losses[row];
    sums->correct += are_correct[row];
    sums->counted += a.labels[row] >= 0;
  }
  return Error{};
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
