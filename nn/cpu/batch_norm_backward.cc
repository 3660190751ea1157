#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "nn/cpu/channel_spans.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/batch_norm_backward.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/simd-inl.h"

#ifndef THINWIRE_NN_CPU_BATCH_NORM_BACKWARD_ONCE
#define THINWIRE_NN_CPU_BATCH_NORM_BACKWARD_ONCE
namespace thinwire::cpu {

// Ways to make dz from dy.
enum class Mask {
  kNone,        // no ReLU
  kRecomputed,  // z > 0 with z = (x - mean) slope + bias
  kStored       // y > 0; dz is written to dresidual
};

struct BackwardArguments {
  const void* x;
  const void* y;
  const void* dy;
  void* dresidual;
  void* dx;
  const float* mean;
  const float* slope;
  const float* bias;
  const float* offset;  // dx = slope dz + offset + x_slope (x - mean)
  const float* x_slope;
};

}  // namespace thinwire::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using cpu::BackwardArguments;
using cpu::kTileRows;
using cpu::Mask;
using cpu::Span;

static_assert(cpu::ChannelSpans::kLanes % hn::MaxLanes(FloatTag()) == 0, "rows are whole vectors");

template <Mask kMask, typename T>
HWY_INLINE FloatVec MaskedGradient(const BackwardArguments& a, FloatTag d, int64_t j,
                                   FloatVec centred, const T* dy, const T* y) {
  const FloatVec g = LoadFloats(d, dy + j);
  if (kMask == Mask::kNone) return g;
  const FloatVec z = kMask == Mask::kStored ? LoadFloats(d, y + j)
                                            : hn::Add(hn::Mul(centred, hn::LoadU(d, a.slope + j)),
                                                      hn::LoadU(d, a.bias + j));
  return hn::IfThenElseZero(hn::Gt(z, hn::Zero(d)), g);
}

template <Mask kMask, typename T>
HWY_INLINE float MaskedGradientOne(const BackwardArguments& a, int64_t j, float centred,
                                   const T* dy, const T* y) {
  const float g = LoadOne(dy + j);
  if (kMask == Mask::kNone) return g;
  const float z = kMask == Mask::kStored ? LoadOne(y + j) : centred * a.slope[j] + a.bias[j];
  return z > 0 ? g : 0;
}

// Adds column sums of dz to `sums`, and those of dz (x - mean) to `products`.
template <int kVectors, Mask kMask, typename T>
HWY_INLINE void BackwardSumTile(const BackwardArguments& a, int64_t first, int64_t j, int64_t rows,
                                int64_t width, double* sums, double* products) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  const T* x = static_cast<const T*>(a.x) + first * width;
  const T* y = static_cast<const T*>(a.y) + (kMask == Mask::kStored ? first * width : 0);
  const T* dy = static_cast<const T*>(a.dy) + first * width;
  T* dz = static_cast<T*>(a.dresidual) + (kMask == Mask::kStored ? first * width : 0);
  FloatVec s[kVectors], p[kVectors];
  for (int k = 0; k < kVectors; ++k) s[k] = p[k] = hn::Zero(d);
  for (int64_t row = 0; row < rows; ++row) {
    for (int k = 0; k < kVectors; ++k) {
      const int64_t at = j + k * lanes;
      const FloatVec centred = hn::Sub(LoadFloats(d, x + at), hn::LoadU(d, a.mean + at));
      const FloatVec g = MaskedGradient<kMask>(a, d, at, centred, dy, y);
      if (kMask == Mask::kStored) StoreFloats(g, d, dz + at);
      s[k] = hn::Add(s[k], g);
      p[k] = hn::MulAdd(g, centred, p[k]);
    }
    x += width;
    dy += width;
    if (kMask == Mask::kStored) {
      y += width;
      dz += width;
    }
  }
  for (int k = 0; k < kVectors; ++k) {
    AddToDoubles(s[k], d, sums + j + k * lanes);
    AddToDoubles(p[k], d, products + j + k * lanes);
  }
}

template <Mask kMask, typename T>
void BackwardSumSpan(const BackwardArguments& a, const Span& span, double* sums, double* products) {
  const int64_t lanes = hn::Lanes(FloatTag());
  for (int64_t row = span.begin; row < span.end; row += kTileRows) {
    const int64_t rows = std::min(kTileRows, span.end - row);
    int64_t j = 0;
    for (; j + 4 * lanes <= span.width; j += 4 * lanes) {
      BackwardSumTile<4, kMask, T>(a, row, j, rows, span.width, sums, products);
    }
    for (; j < span.width; j += lanes) {
      BackwardSumTile<1, kMask, T>(a, row, j, rows, span.width, sums, products);
    }
  }
  const int64_t at = span.end * span.width;
  for (int64_t j = 0; j < span.tail; ++j) {
    const float centred = LoadOne(static_cast<const T*>(a.x) + at + j) - a.mean[j];
    const T* y = kMask == Mask::kStored ? static_cast<const T*>(a.y) + at : nullptr;
    const float g = MaskedGradientOne<kMask>(a, j, centred, static_cast<const T*>(a.dy) + at, y);
    if (kMask == Mask::kStored) StoreOne(g, static_cast<T*>(a.dresidual) + at + j);
    sums[j] += static_cast<double>(g);
    products[j] += static_cast<double>(g) * static_cast<double>(centred);
  }
}

template <Mask kMask, typename T>
void BackwardApplySpan(const BackwardArguments& a, const Span& span) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  const int64_t at = span.begin * span.width;
  const T* x = static_cast<const T*>(a.x) + at;
  const T* dy = static_cast<const T*>(kMask == Mask::kStored ? a.dresidual : a.dy) + at;
  T* dx = static_cast<T*>(a.dx) + at;
  constexpr Mask kLeft = kMask == Mask::kStored ? Mask::kNone : kMask;  // dz is masked already
  for (int64_t row = span.begin; row < span.end; ++row) {
    for (int64_t j = 0; j < span.width; j += lanes) {
      const FloatVec centred = hn::Sub(LoadFloats(d, x + j), hn::LoadU(d, a.mean + j));
      const FloatVec g = MaskedGradient<kLeft, T>(a, d, j, centred, dy, nullptr);
      FloatVec v = hn::MulAdd(centred, hn::LoadU(d, a.x_slope + j), hn::LoadU(d, a.offset + j));
      v = hn::MulAdd(g, hn::LoadU(d, a.slope + j), v);
      StoreFloats(v, d, dx + j);
    }
    x += span.width;
    dy += span.width;
    dx += span.width;
  }
  for (int64_t j = 0; j < span.tail; ++j) {
    const float centred = LoadOne(x + j) - a.mean[j];
    const float g = MaskedGradientOne<kLeft, T>(a, j, centred, dy, nullptr);
    StoreOne(g * a.slope[j] + (centred * a.x_slope[j] + a.offset[j]), dx + j);
  }
}

template <typename T>
void BackwardSumTyped(Mask mask, const BackwardArguments& a, const Span& span, double* sums,
                      double* products) {
  switch (mask) {
    case Mask::kNone:
      return BackwardSumSpan<Mask::kNone, T>(a, span, sums, products);
    case Mask::kRecomputed:
      return BackwardSumSpan<Mask::kRecomputed, T>(a, span, sums, products);
    case Mask::kStored:
      return BackwardSumSpan<Mask::kStored, T>(a, span, sums, products);
  }
}

void BackwardSum(DType type, Mask mask, const BackwardArguments& a, const Span& span, double* sums,
                 double* products) {
  type == DType::kF32 ? BackwardSumTyped<float>(mask, a, span, sums, products)
                      : BackwardSumTyped<uint16_t>(mask, a, span, sums, products);
}

template <typename T>
void BackwardApplyTyped(Mask mask, const BackwardArguments& a, const Span& span) {
  switch (mask) {
    case Mask::kNone:
      return BackwardApplySpan<Mask::kNone, T>(a, span);
    case Mask::kRecomputed:
      return BackwardApplySpan<Mask::kRecomputed, T>(a, span);
    case Mask::kStored:
      return BackwardApplySpan<Mask::kStored, T>(a, span);
  }
}

void BackwardApply(DType type, Mask mask, const BackwardArguments& a, const Span& span) {
  type == DType::kF32 ? BackwardApplyTyped<float>(mask, a, span)
                      : BackwardApplyTyped<uint16_t>(mask, a, span);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(BackwardSum);
HWY_EXPORT(BackwardApply);

namespace cpu {

// Computes dx = scale rstd (dz - mean(dz) - xhat mean(dz xhat)) with xhat = (x - mean) rstd. The
// second pass computes it as slope dz + offset + x_slope (x - mean), with constants per channel.
Error NormalizeBatchBackward(int threads, const BatchNormBackward& a) {
  const ChannelSpans spans(a.x);
  const bool residual = a.dresidual.data != nullptr;
  const Mask mask = !a.relu ? Mask::kNone : residual ? Mask::kStored : Mask::kRecomputed;
  const std::vector<float> mean = spans.Repeat(a.mean), bias = spans.Repeat(a.bias);
  const std::vector<float> slope =
      spans.RepeatEach([&](int64_t c) { return a.scale[c] * a.rstd[c]; });
  BackwardArguments arguments{a.x.data,    a.y.data,     a.dy.data,   a.dresidual.data, a.dx.data,
                              mean.data(), slope.data(), bias.data(), nullptr,          nullptr};
  if (residual && !a.relu) {
    std::memcpy(a.dresidual.data, a.dy.data, a.dy.elements() * SizeOf(a.dy.dtype));
  }

  ColumnSums sums(spans);
  ParallelFor(threads, spans.size(), [&](int64_t i) {
    HWY_DYNAMIC_DISPATCH(BackwardSum)
    (a.x.dtype, mask, arguments, spans[i], sums.first(i), sums.second(i));
  });
  sums.Gather();
  const double n = static_cast<double>(spans.pixels());
  for (int64_t c = 0; c < spans.channels(); ++c) {
    a.dbias[c] += static_cast<float>(sums.first_of(c));
    a.dscale[c] += static_cast<float>(sums.second_of(c) * static_cast<double>(a.rstd[c]));
  }
  const std::vector<float> offset = spans.RepeatEach([&](int64_t c) {
    return static_cast<float>(-static_cast<double>(slope[c]) * sums.first_of(c) / n);
  });
  const std::vector<float> x_slope = spans.RepeatEach([&](int64_t c) {
    const double rstd = static_cast<double>(a.rstd[c]);
    return static_cast<float>(-static_cast<double>(slope[c]) * rstd * rstd * sums.second_of(c) / n);
  });
  arguments.offset = offset.data();
  arguments.x_slope = x_slope.data();
  ParallelFor(threads, spans.size(), [&](int64_t i) {
    HWY_DYNAMIC_DISPATCH(BackwardApply)(a.x.dtype, mask, arguments, spans[i]);
  });
  return Error{};
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
