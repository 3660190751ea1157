// exp and functions made of it, on vectors, for every Highway target.

#if defined(THINWIRE_NN_CPU_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_NN_CPU_EXP_INL_H_
#undef THINWIRE_NN_CPU_EXP_INL_H_
#else
#define THINWIRE_NN_CPU_EXP_INL_H_
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// Returns exp(x) with a relative error of at most 2e-7. x is clamped to [-87, 88], where results
// are normal numbers; NaN stays NaN.
HWY_INLINE FloatVec Exponential(FloatTag d, FloatVec x) {
  const hn::RebindToSigned<FloatTag> d32;
  // Min and Max return their second operand if either is NaN.
  x = hn::Min(hn::Set(d, 88.0f), hn::Max(hn::Set(d, -87.0f), x));
  // exp(x) = 2^n exp(r) with |r| <= ln(2) / 2. ln(2) is split so that its first part times n is
  // exact.
  const FloatVec n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504f)));
  FloatVec r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  FloatVec sum = hn::Set(d, 1.0f / 5040);  // Taylor's series; the first term left out is below 6e-9
  sum = hn::MulAdd(sum, r, hn::Set(d, 1.0f / 720));
  sum = hn::MulAdd(sum, r, hn::Set(d, 1.0f / 120));
  sum = hn::MulAdd(sum, r, hn::Set(d, 1.0f / 24));
  sum = hn::MulAdd(sum, r, hn::Set(d, 1.0f / 6));
  sum = hn::MulAdd(sum, r, hn::Set(d, 0.5f));
  sum = hn::MulAdd(sum, r, hn::Set(d, 1.0f));
  sum = hn::MulAdd(sum, r, hn::Set(d, 1.0f));
  // Makes 2^n by writing n + 127 into the exponent bits of an fp32.
  const auto exponent = hn::Add(hn::ConvertTo(d32, n), hn::Set(d32, 127));
  return hn::Mul(sum, hn::BitCast(d, hn::ShiftLeft<23>(exponent)));
}

// A vector of fp64 has half as many lanes as one of fp32.
using DoubleTag = hn::Repartition<double, FloatTag>;
using DoubleVec = hn::Vec<DoubleTag>;

// Returns exp(x) with an error of one unit in the last place, for x up to 706; NaN stays NaN.
HWY_INLINE DoubleVec Exponential(DoubleTag d, DoubleVec x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));
}

// Returns 1 / (1 + exp(-x)), with an error of at most 2e-7 of it or 1e-38.
HWY_INLINE FloatVec Sigmoid(FloatTag d, FloatVec x) {
  const FloatVec one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exponential(d, hn::Neg(x))));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
