#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "nn/checks.h"
#include "nn/cpu/channel_spans.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/batch_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/simd-inl.h"

#ifndef THINWIRE_NN_CPU_BATCH_NORM_ONCE
#define THINWIRE_NN_CPU_BATCH_NORM_ONCE
namespace thinwire::cpu {

struct ApplyArguments {
  const void* x;
  const void* residual;
  void* y;
  const float* mean;
  const float* slope;  // scale rstd
  const float* bias;
};

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

using cpu::ApplyArguments;
using cpu::BackwardArguments;
using cpu::kTileRows;
using cpu::Mask;
using cpu::Span;

static_assert(cpu::ChannelSpans::kLanes % hn::MaxLanes(FloatTag()) == 0, "rows are whole vectors");

// Adds column sums of (x - shift) to `sums`, and those of its square to `squares`, for kVectors
// vectors side by side. Several vectors give independent chains of additions.
template <int kVectors, typename T>
HWY_INLINE void SumTile(const T* x, int64_t rows, int64_t width, const float* shift, double* sums,
                        double* squares) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  FloatVec s[kVectors], q[kVectors], c[kVectors];
  for (int k = 0; k < kVectors; ++k) {
    s[k] = q[k] = hn::Zero(d);
    c[k] = hn::LoadU(d, shift + k * lanes);
  }
  for (int64_t row = 0; row < rows; ++row, x += width) {
    for (int k = 0; k < kVectors; ++k) {
      const FloatVec v = hn::Sub(LoadFloats(d, x + k * lanes), c[k]);
      s[k] = hn::Add(s[k], v);
      q[k] = hn::MulAdd(v, v, q[k]);
    }
  }
  for (int k = 0; k < kVectors; ++k) {
    AddToDoubles(s[k], d, sums + k * lanes);
    AddToDoubles(q[k], d, squares + k * lanes);
  }
}

template <typename T>
void SumSpan(const T* x, const Span& span, const float* shift, double* sums, double* squares) {
  const int64_t lanes = hn::Lanes(FloatTag());
  for (int64_t row = span.begin; row < span.end; row += kTileRows) {
    const int64_t rows = std::min(kTileRows, span.end - row);
    const T* tile = x + row * span.width;
    int64_t j = 0;
    for (; j + 4 * lanes <= span.width; j += 4 * lanes) {
      SumTile<4>(tile + j, rows, span.width, shift + j, sums + j, squares + j);
    }
    for (; j < span.width; j += lanes) {
      SumTile<1>(tile + j, rows, span.width, shift + j, sums + j, squares + j);
    }
  }
  const T* tail = x + span.end * span.width;
  for (int64_t j = 0; j < span.tail; ++j) {
    const double v = static_cast<double>(LoadOne(tail + j)) - static_cast<double>(shift[j]);
    sums[j] += v;
    squares[j] += v * v;
  }
}

template <typename T, bool kRelu, bool kResidual>
void ApplySpan(const ApplyArguments& a, const Span& span) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  const FloatVec zero = hn::Zero(d);
  const T* x = static_cast<const T*>(a.x) + span.begin * span.width;
  const T* residual = kResidual ? static_cast<const T*>(a.residual) + span.begin * span.width : x;
  T* y = static_cast<T*>(a.y) + span.begin * span.width;
  for (int64_t row = span.begin; row < span.end; ++row) {
    for (int64_t j = 0; j < span.width; j += lanes) {
      const FloatVec centred = hn::Sub(LoadFloats(d, x + j), hn::LoadU(d, a.mean + j));
      FloatVec z = hn::Add(hn::Mul(centred, hn::LoadU(d, a.slope + j)), hn::LoadU(d, a.bias + j));
      if (kResidual) z = hn::Add(z, LoadFloats(d, residual + j));
      // Written as a comparison so that NaN passes the ReLU.
      if (kRelu) z = hn::IfThenZeroElse(hn::Lt(z, zero), z);
      StoreFloats(z, d, y + j);
    }
    x += span.width;
    residual += span.width;
    y += span.width;
  }
  for (int64_t j = 0; j < span.tail; ++j) {
    float z = (LoadOne(x + j) - a.mean[j]) * a.slope[j] + a.bias[j];
    if (kResidual) z += LoadOne(residual + j);
    StoreOne(kRelu && z < 0 ? 0 : z, y + j);
  }
}

void Sum(DType type, const void* x, const Span& span, const float* shift, double* sums,
         double* squares) {
  WithType(type, [&](auto element) HWY_ATTR {
    SumSpan(static_cast<const decltype(element)*>(x), span, shift, sums, squares);
  });
}

template <typename T>
void ApplyTyped(bool relu, const ApplyArguments& a, const Span& span) {
  if (relu) {
    a.residual ? ApplySpan<T, true, true>(a, span) : ApplySpan<T, true, false>(a, span);
  } else {
    a.residual ? ApplySpan<T, false, true>(a, span) : ApplySpan<T, false, false>(a, span);
  }
}

void Apply(DType type, bool relu, const ApplyArguments& a, const Span& span) {
  type == DType::kF32 ? ApplyTyped<float>(relu, a, span) : ApplyTyped<uint16_t>(relu, a, span);
}

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

// Calls use(mask as a type, T()) for the element type T.
template <typename Use>
void WithMask(Mask mask, DType type, const Use& use) {
  WithType(type, [&](auto element) HWY_ATTR {
    switch (mask) {
      case Mask::kNone:
        return use(std::integral_constant<Mask, Mask::kNone>(), element);
      case Mask::kRecomputed:
        return use(std::integral_constant<Mask, Mask::kRecomputed>(), element);
      case Mask::kStored:
        return use(std::integral_constant<Mask, Mask::kStored>(), element);
    }
  });
}

void BackwardSum(DType type, Mask mask, const BackwardArguments& a, const Span& span, double* sums,
                 double* products) {
  WithMask(mask, type, [&](auto constant, auto element) HWY_ATTR {
    BackwardSumSpan<constant(), decltype(element)>(a, span, sums, products);
  });
}

void BackwardApply(DType type, Mask mask, const BackwardArguments& a, const Span& span) {
  WithMask(mask, type, [&](auto constant, auto element) HWY_ATTR {
    BackwardApplySpan<constant(), decltype(element)>(a, span);
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(Sum);
HWY_EXPORT(Apply);
HWY_EXPORT(BackwardSum);
HWY_EXPORT(BackwardApply);

namespace cpu {
namespace {

void ApplyEverywhere(int threads, const ChannelSpans& spans, DType type, bool relu,
                     const ApplyArguments& arguments) {
  ParallelFor(threads, spans.size(), [&](int64_t i) {
    HWY_DYNAMIC_DISPATCH(Apply)(type, relu, arguments, spans[i]);
  });
}

float FirstPixel(const TensorView& x, int64_t channel) {
  return x.dtype == DType::kF32 ? LoadOne(static_cast<const float*>(x.data) + channel)
                                : LoadOne(static_cast<const uint16_t*>(x.data) + channel);
}

// Computes mean and rstd of every channel into `a`, and moves the running statistics. It sums x
// minus the channel's first pixel, which is near the mean, so that squares do not cancel.
void TakeStatistics(int threads, const ChannelSpans& spans, const BatchNormForward& a) {
  const std::vector<float> shift = spans.RepeatEach([&](int64_t c) { return FirstPixel(a.x, c); });
  ColumnSums sums(spans);
  ParallelFor(threads, spans.size(), [&](int64_t i) {
    HWY_DYNAMIC_DISPATCH(Sum)
    (a.x.dtype, a.x.data, spans[i], shift.data(), sums.first(i), sums.second(i));
  });
  sums.Gather();
  const double n = static_cast<double>(spans.pixels());
  for (int64_t c = 0; c < spans.channels(); ++c) {
    const double shifted = sums.first_of(c) / n;
    const double mean = shifted + static_cast<double>(shift[c]);
    const double variance = std::max(0.0, sums.second_of(c) / n - shifted * shifted);
    a.mean[c] = static_cast<float>(mean);
    a.rstd[c] = static_cast<float>(1.0 / std::sqrt(variance + static_cast<double>(a.epsilon)));
    const double unbiased = variance * n / (n - 1);
    const double momentum = static_cast<double>(a.momentum);
    const auto move = [&](float* running, double value) {
      *running =
          static_cast<float>((1 - momentum) * static_cast<double>(*running) + momentum * value);
    };
    move(&a.running_mean[c], mean);
    move(&a.running_var[c], unbiased);
  }
}

}  // namespace

Error Kernels::NormalizeBatch(const BatchNormForward& a) {
  const ChannelSpans spans(a.x);
  const bool trains = a.mean != nullptr;
  RETURN_ERROR(CheckBatch(a, spans.pixels()));
  if (trains) TakeStatistics(threads_, spans, a);
  const std::vector<float> mean = spans.Repeat(trains ? a.mean : a.running_mean);
  const std::vector<float> bias = spans.Repeat(a.bias);
  const std::vector<float> slope = spans.RepeatEach([&](int64_t c) {
    return trains ? a.scale[c] * a.rstd[c] : a.scale[c] / std::sqrt(a.running_var[c] + a.epsilon);
  });
  ApplyEverywhere(threads_, spans, a.x.dtype, a.relu,
                  {a.x.data, a.residual.data, a.y.data, mean.data(), slope.data(), bias.data()});
  return Error{};
}

// Computes dx = scale rstd (dz - mean(dz) - xhat mean(dz xhat)) with xhat = (x - mean) rstd. The
// second pass computes it as slope dz + offset + x_slope (x - mean), with constants per channel.
Error Kernels::NormalizeBatchBackward(const BatchNormBackward& arguments) {
  BatchNormBackward a = arguments;
  if (a.addend.data != nullptr) {
    RETURN_ERROR(Add(a.dy, a.addend, a.dresidual));
    a.dy = a.dresidual;  // of which each element is read before it is overwritten
  }
  const ChannelSpans spans(a.x);
  const bool residual = a.dresidual.data != nullptr;
  const Mask mask = !a.relu ? Mask::kNone : residual ? Mask::kStored : Mask::kRecomputed;
  const std::vector<float> mean = spans.Repeat(a.mean), bias = spans.Repeat(a.bias);
  const std::vector<float> slope =
      spans.RepeatEach([&](int64_t c) { return a.scale[c] * a.rstd[c]; });
  BackwardArguments of_spans{a.x.data,    a.y.data,     a.dy.data,   a.dresidual.data, a.dx.data,
                             mean.data(), slope.data(), bias.data(), nullptr,          nullptr};
  if (residual && !a.relu) {
    std::memcpy(a.dresidual.data, a.dy.data, a.dy.elements() * SizeOf(a.dy.dtype));
  }

  ColumnSums sums(spans);
  ParallelFor(threads_, spans.size(), [&](int64_t i) {
    HWY_DYNAMIC_DISPATCH(BackwardSum)
    (a.x.dtype, mask, of_spans, spans[i], sums.first(i), sums.second(i));
  });
  sums.Gather();
  const double n = static_cast<double>(spans.pixels());
  for (int64_t c = 0; c < spans.channels(); ++c) {
    if (a.dscale == nullptr) break;
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
  of_spans.offset = offset.data();
  of_spans.x_slope = x_slope.data();
  ParallelFor(threads_, spans.size(), [&](int64_t i) {
    HWY_DYNAMIC_DISPATCH(BackwardApply)(a.x.dtype, mask, of_spans, spans[i]);
  });
  return Error{};
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
