#include <cmath>
#include <cstdint>

#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/adamw.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/simd-inl.h"

#ifndef THINWIRE_NN_CPU_ADAMW_FACTORS
#define THINWIRE_NN_CPU_ADAMW_FACTORS
namespace thinwire {

// Numbers of an update that are the same for all elements of a parameter.
struct AdamWFactors {
  float scale;            // of the gradient
  float shrink;           // 1 - lr weight_decay
  float beta1, gain1;     // m = beta1 m + gain1 g
  float beta2, gain2;     // v = beta2 v + gain2 g^2
  float rate;             // lr / (1 - beta1^step)
  float deviation_scale;  // 1 / sqrt(1 - beta2^step)
  float epsilon;
};

}  // namespace thinwire
#endif

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// Updates a vector of elements. It multiplies and adds without fusing, so that each operation
// rounds by itself and nn/cuda/adamw.cu gives the same bits.
struct AdamWKernel {
  AdamWFactors f;
  float* value;
  float* gradient;
  float* mean;
  float* square;

  template <typename Access>
  HWY_INLINE void operator()(const Access& access, int64_t i) const {
    const FloatTag d;
    const FloatVec g = hn::Mul(hn::Set(d, f.scale), access.Load(d, gradient + i));
    const FloatVec m = hn::Add(hn::Mul(hn::Set(d, f.beta1), access.Load(d, mean + i)),
                               hn::Mul(hn::Set(d, f.gain1), g));
    const FloatVec v = hn::Add(hn::Mul(hn::Set(d, f.beta2), access.Load(d, square + i)),
                               hn::Mul(hn::Set(d, f.gain2), hn::Mul(g, g)));
    const FloatVec deviation = hn::Mul(hn::Sqrt(v), hn::Set(d, f.deviation_scale));
    const FloatVec step =
        hn::Div(hn::Mul(hn::Set(d, f.rate), m), hn::Add(deviation, hn::Set(d, f.epsilon)));
    const FloatVec p = hn::Mul(hn::Set(d, f.shrink), access.Load(d, value + i));
    access.Store(hn::Sub(p, step), d, value + i);
    access.Store(m, d, mean + i);
    access.Store(v, d, square + i);
    access.Store(hn::Zero(d), d, gradient + i);
  }
};

void AdamWRange(const AdamWFactors& factors, const AdamWParameter& p, int64_t begin, int64_t end) {
  ForEachVector(end - begin, AdamWKernel{factors, p.value + begin, p.gradient + begin,
                                         p.mean + begin, p.square + begin});
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(AdamWRange);

namespace cpu {
namespace {

constexpr int64_t kGrain = 8 * 1024;  // elements; with fewer, one thread is faster

AdamWFactors FactorsOf(const AdamWUpdate& u) {
  const double step = static_cast<double>(u.step);
  AdamWFactors f;
  f.scale = u.gradient_scale;
  f.shrink = 1;
  f.beta1 = static_cast<float>(u.beta1);
  f.gain1 = static_cast<float>(1 - u.beta1);
  f.beta2 = static_cast<float>(u.beta2);
  f.gain2 = static_cast<float>(1 - u.beta2);
  f.rate = static_cast<float>(u.lr / (1 - std::pow(u.beta1, step)));
  f.deviation_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(u.beta2, step)));
  f.epsilon = static_cast<float>(u.epsilon);
  return f;
}

}  // namespace

void AdamW(int threads, const AdamWUpdate& arguments) {
  AdamWFactors factors = FactorsOf(arguments);
  for (int64_t i = 0; i < arguments.count; ++i) {
    const AdamWParameter& parameter = arguments.parameters[i];
    factors.shrink =
        static_cast<float>(1 - arguments.lr * static_cast<double>(parameter.weight_decay));
    ParallelRange(threads, parameter.n, kGrain, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(AdamWRange)(factors, parameter, begin, end);
    });
  }
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
