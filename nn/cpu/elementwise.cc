#include <cstdint>
#include <cstring>

#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/elementwise.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

template <typename T>
void ReluTyped(const T* x, int64_t n, T* y) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    // Written as a comparison so that NaN passes.
    const FloatVec v = LoadFloats(d, x + i);
    StoreFloats(hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v), d, y + i);
  }
  for (; i < n; ++i) StoreOne(LoadOne(x + i) < 0 ? 0 : LoadOne(x + i), y + i);
}

template <typename T>
void ReluBackwardTyped(const T* y, const T* dy, int64_t n, T* dx) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto open = hn::Gt(LoadFloats(d, y + i), hn::Zero(d));
    StoreFloats(hn::IfThenElseZero(open, LoadFloats(d, dy + i)), d, dx + i);
  }
  for (; i < n; ++i) StoreOne(LoadOne(y + i) > 0 ? LoadOne(dy + i) : 0, dx + i);
}

template <typename A, typename B, typename S>
void AddTyped(const A* a, const B* b, int64_t n, S* sum) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    StoreFloats(hn::Add(LoadFloats(d, a + i), LoadFloats(d, b + i)), d, sum + i);
  }
  for (; i < n; ++i) StoreOne(LoadOne(a + i) + LoadOne(b + i), sum + i);
}

template <typename From, typename To>
void ConvertTyped(const From* from, int64_t n, To* to) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreFloats(LoadFloats(d, from + i), d, to + i);
  for (; i < n; ++i) StoreOne(LoadOne(from + i), to + i);
}

// Each multiplication and addition is rounded by itself, so all instruction sets agree.
void CombineRange(const Combination& c, int64_t begin, int64_t end) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  const FloatVec alpha = hn::Set(d, c.alpha), beta = hn::Set(d, c.beta);
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) {
    FloatVec sum = hn::Mul(alpha, hn::LoadU(d, c.a + i));
    if (c.b != nullptr) sum = hn::Add(sum, hn::Mul(beta, hn::LoadU(d, c.b + i)));
    hn::StoreU(sum, d, c.sum + i);
  }
  for (; i < end; ++i) {
    c.sum[i] = c.b == nullptr ? c.alpha * c.a[i] : c.alpha * c.a[i] + c.beta * c.b[i];
  }
}

void ReluF32(const float* x, int64_t n, float* y) { ReluTyped(x, n, y); }
void ReluBF16(const uint16_t* x, int64_t n, uint16_t* y) { ReluTyped(x, n, y); }
void ReluBackwardF32(const float* y, const float* dy, int64_t n, float* dx) {
  ReluBackwardTyped(y, dy, n, dx);
}
void ReluBackwardBF16(const uint16_t* y, const uint16_t* dy, int64_t n, uint16_t* dx) {
  ReluBackwardTyped(y, dy, n, dx);
}
void AddF32(const float* a, const float* b, int64_t n, float* sum) { AddTyped(a, b, n, sum); }
void AddBF16(const uint16_t* a, const uint16_t* b, int64_t n, uint16_t* sum) {
  AddTyped(a, b, n, sum);
}
void Widen(const uint16_t* from, int64_t n, float* to) { ConvertTyped(from, n, to); }
void Narrow(const float* from, int64_t n, uint16_t* to) { ConvertTyped(from, n, to); }

// Each multiplication and addition is rounded by itself here, too.
void SgdRange(const SgdUpdate& u, const SgdParameter& parameter, int64_t begin, int64_t end) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  const FloatVec decay = hn::Set(d, u.weight_decay), momentum = hn::Set(d, u.momentum);
  const FloatVec lr = hn::Set(d, u.lr), scale = hn::Set(d, u.gradient_scale);
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) {
    const FloatVec p = hn::LoadU(d, parameter.value + i);
    FloatVec g = hn::Add(hn::Mul(scale, hn::LoadU(d, parameter.gradient + i)), hn::Mul(decay, p));
    if (parameter.velocity != nullptr) {
      const FloatVec v = hn::Add(hn::Mul(momentum, hn::LoadU(d, parameter.velocity + i)), g);
      hn::StoreU(v, d, parameter.velocity + i);
      g = u.nesterov ? hn::Add(g, hn::Mul(momentum, v)) : v;
    }
    hn::StoreU(hn::Sub(p, hn::Mul(lr, g)), d, parameter.value + i);
    hn::StoreU(hn::Zero(d), d, parameter.gradient + i);
  }
  for (; i < end; ++i) {
    float g = u.gradient_scale * parameter.gradient[i] + u.weight_decay * parameter.value[i];
    if (parameter.velocity != nullptr) {
      const float v = u.momentum * parameter.velocity[i] + g;
      parameter.velocity[i] = v;
      g = u.nesterov ? g + u.momentum * v : v;
    }
    parameter.value[i] -= u.lr * g;
    parameter.gradient[i] = 0;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(ReluF32);
HWY_EXPORT(ReluBF16);
HWY_EXPORT(ReluBackwardF32);
HWY_EXPORT(ReluBackwardBF16);
HWY_EXPORT(AddF32);
HWY_EXPORT(AddBF16);
HWY_EXPORT(Widen);
HWY_EXPORT(Narrow);
HWY_EXPORT(CombineRange);
HWY_EXPORT(SgdRange);

namespace cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // elements; with fewer, one thread is faster

const float* F32(const TensorView& x) { return static_cast<const float*>(x.data); }
float* F32Out(const TensorView& x) { return static_cast<float*>(x.data); }
const uint16_t* BF16(const TensorView& x) { return static_cast<const uint16_t*>(x.data); }
uint16_t* BF16Out(const TensorView& x) { return static_cast<uint16_t*>(x.data); }

}  // namespace

void Relu(int threads, const TensorView& x, const TensorView& y) {
  ParallelRange(threads, x.elements(), kGrain, [&](int64_t i, int64_t end) {
    if (x.dtype == DType::kF32) {
      HWY_DYNAMIC_DISPATCH(ReluF32)(F32(x) + i, end - i, F32Out(y) + i);
    } else {
      HWY_DYNAMIC_DISPATCH(ReluBF16)(BF16(x) + i, end - i, BF16Out(y) + i);
    }
  });
}

void ReluBackward(int threads, const TensorView& y, const TensorView& dy, const TensorView& dx) {
  ParallelRange(threads, y.elements(), kGrain, [&](int64_t i, int64_t end) {
    if (y.dtype == DType::kF32) {
      HWY_DYNAMIC_DISPATCH(ReluBackwardF32)(F32(y) + i, F32(dy) + i, end - i, F32Out(dx) + i);
    } else {
      HWY_DYNAMIC_DISPATCH(ReluBackwardBF16)(BF16(y) + i, BF16(dy) + i, end - i, BF16Out(dx) + i);
    }
  });
}

void Add(int threads, const TensorView& a, const TensorView& b, const TensorView& sum) {
  ParallelRange(threads, a.elements(), kGrain, [&](int64_t i, int64_t end) {
    if (a.dtype == DType::kF32) {
      HWY_DYNAMIC_DISPATCH(AddF32)(F32(a) + i, F32(b) + i, end - i, F32Out(sum) + i);
    } else {
      HWY_DYNAMIC_DISPATCH(AddBF16)(BF16(a) + i, BF16(b) + i, end - i, BF16Out(sum) + i);
    }
  });
}

void Convert(int threads, const TensorView& from, const TensorView& to) {
  if (from.elements() == 0) return;  // its memory may be null
  const size_t size = SizeOf(from.dtype);
  ParallelRange(threads, from.elements(), kGrain, [&](int64_t i, int64_t end) {
    if (from.dtype == to.dtype) {
      std::memcpy(static_cast<char*>(to.data) + i * size,
                  static_cast<const char*>(from.data) + i * size, (end - i) * size);
    } else if (from.dtype == DType::kF32) {
      HWY_DYNAMIC_DISPATCH(Narrow)(F32(from) + i, end - i, BF16Out(to) + i);
    } else {
      HWY_DYNAMIC_DISPATCH(Widen)(BF16(from) + i, end - i, F32Out(to) + i);
    }
  });
}

void Sgd(int threads, const SgdUpdate& arguments) {
  for (int64_t p = 0; p < arguments.count; ++p) {
    const SgdParameter& parameter = arguments.parameters[p];
    ParallelRange(threads, parameter.n, kGrain, [&](int64_t i, int64_t end) {
      HWY_DYNAMIC_DISPATCH(SgdRange)(arguments, parameter, i, end);
    });
  }
}

void Combine(int threads, const Combination& arguments) {
  ParallelRange(threads, arguments.n, kGrain, [&](int64_t i, int64_t end) {
    HWY_DYNAMIC_DISPATCH(CombineRange)(arguments, i, end);
  });
}

void Accumulate(int threads, const float* source, int64_t n, float* target) {
  ParallelRange(threads, n, kGrain, [&](int64_t i, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AddF32)(target + i, source + i, end - i, target + i);
  });
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
