#include <algorithm>
#include <cmath>
#include <cstdint>
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

}  // namespace thinwire::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using cpu::ApplyArguments;
using cpu::kTileRows;
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
  if (type == DType::kF32) {
    SumSpan(static_cast<const float*>(x), span, shift, sums, squares);
  } else {
    SumSpan(static_cast<const uint16_t*>(x), span, shift, sums, squares);
  }
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

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(Sum);
HWY_EXPORT(Apply);

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

Error NormalizeBatch(int threads, const BatchNormForward& a) {
  const ChannelSpans spans(a.x);
  const bool trains = a.mean != nullptr;
  RETURN_ERROR(CheckBatch(a, spans.pixels()));
  if (trains) TakeStatistics(threads, spans, a);
  const std::vector<float> mean = spans.Repeat(trains ? a.mean : a.running_mean);
  const std::vector<float> bias = spans.Repeat(a.bias);
  const std::vector<float> slope = spans.RepeatEach([&](int64_t c) {
    return trains ? a.scale[c] * a.rstd[c] : a.scale[c] / std::sqrt(a.running_var[c] + a.epsilon);
  });
  ApplyEverywhere(threads, spans, a.x.dtype, a.relu,
                  {a.x.data, a.residual.data, a.y.data, mean.data(), slope.data(), bias.data()});
  return Error{};
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
