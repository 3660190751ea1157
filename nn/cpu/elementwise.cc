#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "nn/adamw_factors.h"
#include "nn/clip_scale.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/elementwise.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/adamw-inl.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// Written as a comparison so that NaN passes.
struct ReluOf {
  HWY_INLINE FloatVec operator()(FloatTag d, FloatVec x) const {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
};
struct Masked {
  HWY_INLINE FloatVec operator()(FloatTag d, FloatVec y, FloatVec dy) const {
    return hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), dy);
  }
};
struct Plus {
  HWY_INLINE FloatVec operator()(FloatTag, FloatVec a, FloatVec b) const { return hn::Add(a, b); }
};
struct Same {
  HWY_INLINE FloatVec operator()(FloatTag, FloatVec x) const { return x; }
};

// Each multiplication and addition is rounded by itself, so all instruction sets agree.
void CombineRange(const Combination& c, int64_t begin, int64_t end) {
  const FloatTag d;
  const FloatVec alpha = hn::Set(d, c.alpha), beta = hn::Set(d, c.beta);
  ForEachVector(end - begin, [&](const auto& access, int64_t at) HWY_ATTR {
    const int64_t i = begin + at;
    FloatVec sum = hn::Mul(alpha, access.Load(d, c.a + i));
    if (c.b != nullptr) sum = hn::Add(sum, hn::Mul(beta, access.Load(d, c.b + i)));
    access.Store(sum, d, c.sum + i);
  });
}

void ReluRange(const TensorView& x, const TensorView& y, int64_t begin, int64_t end) {
  MapRange(begin, end, ReluOf(), y, x);
}
void ReluBackwardRange(const TensorView& y, const TensorView& dy, const TensorView& dx,
                       int64_t begin, int64_t end) {
  MapRange(begin, end, Masked(), dx, y, dy);
}
void AddRange(const TensorView& a, const TensorView& b, const TensorView& sum, int64_t begin,
              int64_t end) {
  MapRange(begin, end, Plus(), sum, a, b);
}
void Widen(const uint16_t* from, int64_t n, float* to) { Map(n, Same(), to, from); }
void Narrow(const float* from, int64_t n, uint16_t* to) { Map(n, Same(), to, from); }

// Each multiplication and addition is rounded by itself here, too.
void SgdRange(const SgdUpdate& u, const SgdParameter& parameter, int64_t begin, int64_t end) {
  const FloatTag d;
  const FloatVec decay = hn::Set(d, u.weight_decay), momentum = hn::Set(d, u.momentum);
  const FloatVec lr = hn::Set(d, u.lr), scale = hn::Set(d, u.gradient_scale);
  ForEachVector(end - begin, [&](const auto& access, int64_t at) HWY_ATTR {
    const int64_t i = begin + at;
    const FloatVec p = access.Load(d, parameter.value + i);
    FloatVec g = hn::Add(hn::Mul(scale, access.Load(d, parameter.gradient + i)), hn::Mul(decay, p));
    if (parameter.velocity != nullptr) {
      const FloatVec v = hn::Add(hn::Mul(momentum, access.Load(d, parameter.velocity + i)), g);
      access.Store(v, d, parameter.velocity + i);
      g = u.nesterov ? hn::Add(g, hn::Mul(momentum, v)) : v;
    }
    access.Store(hn::Sub(p, hn::Mul(lr, g)), d, parameter.value + i);
    access.Store(hn::Zero(d), d, parameter.gradient + i);
  });
}

void AdamWRange(const AdamWUpdate& u, const AdamWFactors& f, const AdamWParameter& parameter,
                int64_t begin, int64_t end) {
  UpdateByAdamW(u, f, parameter, begin, end);
}

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
HWY_EXPORT(ReluRange);
HWY_EXPORT(ReluBackwardRange);
HWY_EXPORT(AddRange);
HWY_EXPORT(Widen);
HWY_EXPORT(Narrow);
HWY_EXPORT(CombineRange);
HWY_EXPORT(SgdRange);
HWY_EXPORT(AdamWRange);
HWY_EXPORT(SumOfBlock);

namespace cpu {
namespace {

// Elements; with fewer, one thread is faster.
constexpr int64_t kGrain = 16 * 1024, kAdamWGrain = 8 * 1024;
constexpr int64_t kBlock = 8192;  // elements of a sum of squares that one thread adds up

// Makes the clip factor the gradients' scale. Returns false if it is NaN: then there is no update.
template <typename Update>
bool TakeFactor(Update* update) {
  if (update->clip_factor != nullptr) update->gradient_scale = *update->clip_factor;
  return update->clip_factor == nullptr || !std::isnan(*update->clip_factor);
}

// Writes the copy that a parameter wants of its new value.
template <typename Parameter>
Error WriteNarrow(const Parameter& parameter, Kernels* kernels) {
  if (parameter.narrow == nullptr) return Error{};
  return kernels->Convert(ViewOf(parameter.value, DType::kF32, {parameter.n}),
                          ViewOf(parameter.narrow, DType::kBF16, {parameter.n}));
}

}  // namespace

Error Kernels::Relu(const TensorView& x, const TensorView& y) {
  ParallelRange(threads_, x.elements(), kGrain, [&](int64_t i, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ReluRange)(x, y, i, end);
  });
  return Error{};
}

Error Kernels::ReluBackward(const TensorView& y, const TensorView& dy, const TensorView& dx) {
  ParallelRange(threads_, y.elements(), kGrain, [&](int64_t i, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ReluBackwardRange)(y, dy, dx, i, end);
  });
  return Error{};
}

Error Kernels::Add(const TensorView& a, const TensorView& b, const TensorView& sum) {
  assert(a.dtype == b.dtype && a.elements() == b.elements());
  ParallelRange(threads_, a.elements(), kGrain, [&](int64_t i, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AddRange)(a, b, sum, i, end);
  });
  return Error{};
}

Error Kernels::Convert(const TensorView& from, const TensorView& to) {
  assert(from.elements() == to.elements());
  if (from.elements() == 0) return Error{};  // its memory may be null
  const size_t size = SizeOf(from.dtype);
  ParallelRange(threads_, from.elements(), kGrain, [&](int64_t i, int64_t end) {
    if (from.dtype == to.dtype) {
      std::memcpy(static_cast<char*>(to.data) + i * size,
                  static_cast<const char*>(from.data) + i * size, (end - i) * size);
    } else if (from.dtype == DType::kF32) {
      HWY_DYNAMIC_DISPATCH(Narrow)(from.as<float>() + i, end - i, to.as<uint16_t>() + i);
    } else {
      HWY_DYNAMIC_DISPATCH(Widen)(from.as<uint16_t>() + i, end - i, to.as<float>() + i);
    }
  });
  return Error{};
}

Error Kernels::Sgd(const SgdUpdate& arguments) {
  SgdUpdate update = arguments;
  if (!TakeFactor(&update)) return Error{};
  for (int64_t p = 0; p < update.count; ++p) {
    const SgdParameter& parameter = update.parameters[p];
    ParallelRange(threads_, parameter.n, kGrain, [&](int64_t i, int64_t end) {
      HWY_DYNAMIC_DISPATCH(SgdRange)(update, parameter, i, end);
    });
    RETURN_ERROR(WriteNarrow(parameter, this));
  }
  return Error{};
}

Error Kernels::AdamW(const AdamWUpdate& arguments) {
  AdamWUpdate update = arguments;
  if (!TakeFactor(&update)) return Error{};
  const AdamWFactors factors = FactorsOf(update);
  for (int64_t p = 0; p < update.count; ++p) {
    const AdamWParameter& parameter = update.parameters[p];
    if (parameter.is_coded()) {
      CodedAdamW(threads_, update, factors, parameter);
    } else {
      ParallelRange(threads_, parameter.n, kAdamWGrain, [&](int64_t i, int64_t end) {
        HWY_DYNAMIC_DISPATCH(AdamWRange)(update, factors, parameter, i, end);
      });
    }
    RETURN_ERROR(WriteNarrow(parameter, this));
  }
  return Error{};
}

Error Kernels::Combine(const Combination& arguments) {
  ParallelRange(threads_, arguments.n, kGrain, [&](int64_t i, int64_t end) {
    HWY_DYNAMIC_DISPATCH(CombineRange)(arguments, i, end);
  });
  return Error{};
}

void Accumulate(int threads, const float* source, int64_t n, float* target) {
  const TensorView sum = ViewOf(target, DType::kF32, {n});
  const TensorView more = ViewOf(source, DType::kF32, {n});
  ParallelRange(threads, n, kGrain, [&](int64_t i, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AddRange)(sum, more, sum, i, end);
  });
}

Error Kernels::SumsOfSquares(const FloatRange* ranges, int64_t count, double* sums) {
  for (int64_t i = 0; i < count; ++i) {
    const float* const values = ranges[i].values;
    const int64_t n = ranges[i].n;
    std::vector<double> of_blocks((n + kBlock - 1) / kBlock);
    ParallelFor(threads_, static_cast<int64_t>(of_blocks.size()), [&](int64_t b) {
      of_blocks[b] =
          HWY_DYNAMIC_DISPATCH(SumOfBlock)(values + b * kBlock, std::min(kBlock, n - b * kBlock));
    });
    sums[i] = std::accumulate(of_blocks.begin(), of_blocks.end(), 0.0);
  }
  return Error{};
}

Error Kernels::ClipByNorm(const NormClip& arguments) {
  RETURN_ERROR(SumsOfSquares(arguments.ranges, arguments.count, arguments.sums));
  double sum = 0;
  for (int64_t i = 0; i < arguments.count; ++i) sum += arguments.sums[i];
  *arguments.factor = std::isfinite(sum) ? static_cast<float>(ClipScale(sum, arguments.clip_norm))
                                         : std::numeric_limits<float>::quiet_NaN();
  return Error{};
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
