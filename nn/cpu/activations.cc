#include <algorithm>
#include <cstdint>

#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/activations.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/exp-inl.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// A function's value and derivative at an element. x is first limited to the range in which results
// still change in fp32. Min and Max return their second operand if either is NaN.
struct ValueAndSlope {
  FloatVec value, slope;
};

// Computes 0.5 (1 + tanh(u)) as sigmoid(2 u). Beyond 12 in magnitude it is 0 or 1 in fp32, and its
// slope 0.
struct TanhGelu {
  HWY_INLINE ValueAndSlope operator()(FloatTag d, FloatVec x) const {
    const FloatVec one = hn::Set(d, 1.0f), factor = hn::Set(d, 1.59576912f);  // 2 sqrt(2 / pi)
    const FloatVec near = hn::Min(hn::Set(d, 12.0f), hn::Max(hn::Set(d, -12.0f), x));
    const FloatVec cubic = hn::Mul(hn::Set(d, 0.044715f), hn::Mul(near, near));
    const FloatVec u = hn::Mul(hn::Mul(factor, near), hn::Add(one, cubic));
    const FloatVec du = hn::Mul(factor, hn::MulAdd(hn::Set(d, 3.0f), cubic, one));
    const FloatVec s = Sigmoid(d, u);
    const FloatVec ds = hn::Mul(hn::Mul(s, hn::Sub(one, s)), du);
    return {hn::Mul(hn::Max(hn::Set(d, -12.0f), x), s), hn::MulAdd(near, ds, s)};
  }
};

// Computes Phi(-z) = exp(-z^2 / 2) t P(t) with t = 1 / (1 + 0.35 z) for z >= 0. P interpolates at
// Chebyshev's nodes for z up to 13; its relative error is 4e-8. Phi(z) is 1 - Phi(-z).
struct ExactGelu {
  HWY_INLINE ValueAndSlope operator()(FloatTag d, FloatVec x) const {
    const FloatVec one = hn::Set(d, 1.0f);
    const FloatVec z = hn::Min(hn::Set(d, 13.0f), hn::Abs(x));
    const FloatVec bell = Exponential(d, hn::Mul(hn::Set(d, -0.5f), hn::Mul(z, z)));
    const FloatVec t = hn::Div(one, hn::MulAdd(hn::Set(d, 0.35f), z, one));
    FloatVec p = hn::Set(d, -0.0295203081f);
    p = hn::MulAdd(p, t, hn::Set(d, 0.145804666f));
    p = hn::MulAdd(p, t, hn::Set(d, -0.259508662f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.163493263f));
    p = hn::MulAdd(p, t, hn::Set(d, -0.0260523654f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.106730177f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.119532313f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.139901687f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.139619237f));
    const FloatVec tail = hn::Mul(bell, hn::Mul(t, p));
    const FloatVec phi = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
    const FloatVec density = hn::Mul(bell, hn::Set(d, 0.398942280f));  // 1 / sqrt(2 pi)
    const FloatVec near = hn::CopySign(z, x);
    return {hn::Mul(hn::Max(hn::Set(d, -13.0f), x), phi), hn::MulAdd(near, density, phi)};
  }
};

// Computes tanh(x) as 2 sigmoid(2 x) - 1. Beyond 10 in magnitude it is -1 or 1 in fp32, and its
// slope 0.
struct Tanh {
  HWY_INLINE ValueAndSlope operator()(FloatTag d, FloatVec x) const {
    const FloatVec one = hn::Set(d, 1.0f);
    const FloatVec near = hn::Min(hn::Set(d, 10.0f), hn::Max(hn::Set(d, -10.0f), x));
    const FloatVec s = Sigmoid(d, hn::Add(near, near));
    const FloatVec tanh = hn::Sub(hn::Add(s, s), one);
    return {tanh, hn::NegMulAdd(tanh, tanh, one)};
  }
};

template <typename Function>
struct ValueOf {
  HWY_INLINE FloatVec operator()(FloatTag d, FloatVec x) const { return Function()(d, x).value; }
};
template <typename Function>
struct GradientOf {
  HWY_INLINE FloatVec operator()(FloatTag d, FloatVec x, FloatVec dy) const {
    return hn::Mul(dy, Function()(d, x).slope);
  }
};

// Computes silu(g) up with silu(g) = g s and s = sigmoid(g).
struct SwigluOf {
  HWY_INLINE FloatVec operator()(FloatTag d, FloatVec g, FloatVec up) const {
    return hn::Mul(hn::Mul(g, Sigmoid(d, g)), up);
  }
};

// Its gradient, with silu'(g) = s (1 + g (1 - s)).
template <typename T>
struct SwigluBackwardKernel {
  const T* gate;
  const T* up;
  const T* dy;
  T* dgate;
  T* dup;

  template <typename Access>
  HWY_INLINE void operator()(const Access& access, int64_t i) const {
    const FloatTag d;
    const FloatVec one = hn::Set(d, 1.0f), g = access.Load(d, gate + i);
    const FloatVec u = access.Load(d, up + i), gradient = access.Load(d, dy + i);
    const FloatVec s = Sigmoid(d, g);
    const FloatVec slope = hn::Mul(s, hn::MulAdd(g, hn::Sub(one, s), one));
    access.Store(hn::Mul(gradient, hn::Mul(u, slope)), d, dgate + i);
    access.Store(hn::Mul(gradient, hn::Mul(g, s)), d, dup + i);
  }
};

// Calls `use` with the function.
template <typename Use>
void With(Pointwise function, const Use& use) {
  switch (function) {
    case Pointwise::kTanhGelu:
      return use(TanhGelu());
    case Pointwise::kExactGelu:
      return use(ExactGelu());
    case Pointwise::kTanh:
      return use(Tanh());
  }
}

void ApplyRange(Pointwise function, const TensorView& x, const TensorView& y, int64_t begin,
                int64_t end) {
  With(function, [&](auto f) HWY_ATTR { MapRange(begin, end, ValueOf<decltype(f)>(), y, x); });
}
void ApplyBackwardRange(Pointwise function, const TensorView& x, const TensorView& dy,
                        const TensorView& dx, int64_t begin, int64_t end) {
  With(function,
       [&](auto f) HWY_ATTR { MapRange(begin, end, GradientOf<decltype(f)>(), dx, x, dy); });
}
void SwigluRows(const TensorView& x, const TensorView& y, int64_t features, int64_t begin,
                int64_t end) {
  WithType(x.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    for (int64_t row = begin; row < end; ++row) {
      const T* const gate = x.as<const T>() + row * 2 * features;
      Map(features, SwigluOf(), y.as<T>() + row * features, gate, gate + features);
    }
  });
}
void SwigluBackwardRows(const TensorView& x, const TensorView& dy, const TensorView& dx,
                        int64_t features, int64_t begin, int64_t end) {
  WithType(x.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    for (int64_t row = begin; row < end; ++row) {
      const T* const gate = x.as<const T>() + row * 2 * features;
      T* const dgate = dx.as<T>() + row * 2 * features;
      ForEachVector(features,
                    SwigluBackwardKernel<T>{gate, gate + features, dy.as<T>() + row * features,
                                            dgate, dgate + features});
    }
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(ApplyRange);
HWY_EXPORT(ApplyBackwardRange);
HWY_EXPORT(SwigluRows);
HWY_EXPORT(SwigluBackwardRows);

namespace cpu {
namespace {

constexpr int64_t kGrain = 4 * 1024;  // elements; with fewer, one thread is faster

}  // namespace

Error Kernels::Apply(Pointwise function, const TensorView& x, const TensorView& y) {
  ParallelRange(threads_, x.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ApplyRange)(function, x, y, begin, end);
  });
  return Error{};
}

Error Kernels::ApplyBackward(Pointwise function, const TensorView& x, const TensorView& dy,
                             const TensorView& dx) {
  ParallelRange(threads_, x.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ApplyBackwardRange)(function, x, dy, dx, begin, end);
  });
  return Error{};
}

Error Kernels::Swiglu(const TensorView& x, const TensorView& y) {
  const int64_t features = y.dims[y.rank - 1];
  if (y.elements() == 0) return Error{};
  ParallelRange(threads_, y.elements() / features, std::max<int64_t>(1, kGrain / features),
                [&](int64_t begin, int64_t end) {
                  HWY_DYNAMIC_DISPATCH(SwigluRows)(x, y, features, begin, end);
                });
  return Error{};
}

Error Kernels::SwigluBackward(const TensorView& x, const TensorView& dy, const TensorView& dx) {
  const int64_t features = dy.dims[dy.rank - 1];
  if (dy.elements() == 0) return Error{};
  ParallelRange(threads_, dy.elements() / features, std::max<int64_t>(1, kGrain / features),
                [&](int64_t begin, int64_t end) {
                  HWY_DYNAMIC_DISPATCH(SwigluBackwardRows)(x, dy, dx, features, begin, end);
                });
  return Error{};
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
