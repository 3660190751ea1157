// The update of AdamW, for every Highway target.

#if defined(THINWIRE_NN_CPU_ADAMW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_NN_CPU_ADAMW_INL_H_
#undef THINWIRE_NN_CPU_ADAMW_INL_H_
#else
#define THINWIRE_NN_CPU_ADAMW_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "nn/adamw_factors.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// Updates elements [begin, end) of a parameter whose means are numbers. Multiplies and adds without
// fusing, and nn/cuda/adamw_element.cuh gives the same bits.
HWY_INLINE void UpdateByAdamW(const AdamWUpdate& u, const AdamWFactors& f,
                              const AdamWParameter& parameter, int64_t begin, int64_t end) {
  const FloatTag d;
  const FloatVec scale = hn::Set(d, u.gradient_scale), shrink = hn::Set(d, ShrinkOf(u, parameter));
  const FloatVec beta1 = hn::Set(d, f.beta1), gain1 = hn::Set(d, f.gain1);
  const FloatVec beta2 = hn::Set(d, f.beta2), gain2 = hn::Set(d, f.gain2);
  const FloatVec rate = hn::Set(d, f.rate), epsilon = hn::Set(d, f.epsilon);
  const FloatVec deviation_scale = hn::Set(d, f.deviation_scale);
  ForEachVector(end - begin, [&](const auto& access, int64_t at) HWY_ATTR {
    const int64_t i = begin + at;
    const FloatVec g = hn::Mul(scale, access.Load(d, parameter.gradient + i));
    const FloatVec m =
        hn::Add(hn::Mul(beta1, access.Load(d, parameter.mean + i)), hn::Mul(gain1, g));
    const FloatVec v = hn::Add(hn::Mul(beta2, access.Load(d, parameter.square + i)),
                               hn::Mul(gain2, hn::Mul(g, g)));
    const FloatVec deviation = hn::Mul(hn::Sqrt(v), deviation_scale);
    const FloatVec step = hn::Div(hn::Mul(rate, m), hn::Add(deviation, epsilon));
    const FloatVec p = hn::Mul(shrink, access.Load(d, parameter.value + i));
    access.Store(hn::Sub(p, step), d, parameter.value + i);
    access.Store(m, d, parameter.mean + i);
    access.Store(v, d, parameter.square + i);
    access.Store(hn::Zero(d), d, parameter.gradient + i);
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
