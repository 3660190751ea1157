#include "nn/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "nn/cpu/channel_runs.h"
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
using cpu::Run;

static_assert(cpu::ChannelRuns::kLanes % hn::MaxLanes(FloatTag()) == 0, "rows are whole vectors");

// sums += column sums of (x - shift), squares += those of its square; kVectors side by side.
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
void SumRun(const T* x, const Run& run, const float* shift, double* sums, double* squares) {
  const int64_t lanes = hn::Lanes(FloatTag());
  for (int64_t row = run.begin; row < run.end; row += kTileRows) {
    const int64_t rows = std::min(kTileRows, run.end - row);
    const T* tile = x + row * run.width;
    int64_t j = 0;
    for (; j + 4 * lanes <= run.width; j += 4 * lanes) {
      SumTile<4>(tile + j, rows, run.width, shift + j, sums + j, squares + j);
    }
    for (; j < run.width; j += lanes) {
      SumTile<1>(tile + j, rows, run.width, shift + j, sums + j, squares + j);
    }
  }
  const T* tail = x + run.end * run.width;
  for (int64_t j = 0; j < run.tail; ++j) {
    const double v = static_cast<double>(LoadOne(tail + j)) - static_cast<double>(shift[j]);
    sums[j] += v;
    squares[j] += v * v;
  }
}

template <typename T, bool kRelu, bool kResidual>
void ApplyRun(const ApplyArguments& a, const Run& run) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  const FloatVec zero = hn::Zero(d);
  const T* x = static_cast<const T*>(a.x) + run.begin * run.width;
  const T* residual = kResidual ? static_cast<const T*>(a.residual) + run.begin * run.width : x;
  T* y = static_cast<T*>(a.y) + run.begin * run.width;
  for (int64_t row = run.begin; row < run.end; ++row) {
    for (int64_t j = 0; j < run.width; j += lanes) {
      const FloatVec centred = hn::Sub(LoadFloats(d, x + j), hn::LoadU(d, a.mean + j));
      FloatVec z = hn::Add(hn::Mul(centred, hn::LoadU(d, a.slope + j)), hn::LoadU(d, a.bias + j));
      if (kResidual) z = hn::Add(z, LoadFloats(d, residual + j));
      if (kRelu) z = hn::IfThenZeroElse(hn::Lt(z, zero), z);
      StoreFloats(z, d, y + j);
    }
    x += run.width;
    residual += run.width;
    y += run.width;
  }
  for (int64_t j = 0; j < run.tail; ++j) {
    float z = (LoadOne(x + j) - a.mean[j]) * a.slope[j] + a.bias[j];
    if (kResidual) z += LoadOne(residual + j);
    StoreOne(kRelu && z < 0 ? 0 : z, y + j);
  }
}

void Sum(DType type, const void* x, const Run& run, const float* shift, double* sums,
         double* squares) {
  if (type == DType::kF32) {
    SumRun(static_cast<const float*>(x), run, shift, sums, squares);
  } else {
    SumRun(static_cast<const uint16_t*>(x), run, shift, sums, squares);
  }
}

template <typename T>
void ApplyTyped(bool relu, const ApplyArguments& a, const Run& run) {
  if (relu) {
    a.residual ? ApplyRun<T, true, true>(a, run) : ApplyRun<T, true, false>(a, run);
  } else {
    a.residual ? ApplyRun<T, false, true>(a, run) : ApplyRun<T, false, false>(a, run);
  }
}

void Apply(DType type, bool relu, const ApplyArguments& a, const Run& run) {
  type == DType::kF32 ? ApplyTyped<float>(relu, a, run) : ApplyTyped<uint16_t>(relu, a, run);
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

void ApplyEverywhere(int threads, const ChannelRuns& runs, DType type, bool relu,
                     const ApplyArguments& arguments) {
  ParallelFor(threads, runs.size(), [&](int64_t i) {
    HWY_DYNAMIC_DISPATCH(Apply)(type, relu, arguments, runs[i]);
  });
}

float FirstPixel(const TensorView& x, int64_t channel) {
  return x.dtype == DType::kF32 ? LoadOne(static_cast<const float*>(x.data) + channel)
                                : LoadOne(static_cast<const uint16_t*>(x.data) + channel);
}

// Mean and rstd of every channel into `a`, and the running statistics moved.
// Sums are taken of x - x[first pixel]: near the mean, so that squares do not cancel.
void TakeStatistics(int threads, const ChannelRuns& runs, const BatchNormForward& a) {
  const std::vector<float> shift = runs.RepeatEach([&](int64_t c) { return FirstPixel(a.x, c); });
  ColumnSums sums(runs);
  ParallelFor(threads, runs.size(), [&](int64_t i) {
    HWY_DYNAMIC_DISPATCH(Sum)
    (a.x.dtype, a.x.data, runs[i], shift.data(), sums.first(i), sums.second(i));
  });
  sums.Gather();
  const double n = static_cast<double>(runs.pixels());
  for (int64_t c = 0; c < runs.channels(); ++c) {
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
  const ChannelRuns runs(a.x);
  if (runs.pixels() < 2) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "batch norm: %lld value(s) a channel, want at least 2 to train",
                     static_cast<long long>(runs.pixels()));
  }
  TakeStatistics(threads, runs, a);
  const std::vector<float> mean = runs.Repeat(a.mean), bias = runs.Repeat(a.bias);
  const std::vector<float> slope =
      runs.RepeatEach([&](int64_t c) { return a.scale[c] * a.rstd[c]; });
  ApplyEverywhere(threads, runs, a.x.dtype, a.relu,
                  {a.x.data, a.residual.data, a.y.data, mean.data(), slope.data(), bias.data()});
  return Error{};
}

Error NormalizeByRunning(int threads, const BatchNormInference& a) {
  const ChannelRuns runs(a.x);
  const std::vector<float> mean = runs.Repeat(a.running_mean), bias = runs.Repeat(a.bias);
  const std::vector<float> slope = runs.RepeatEach(
      [&](int64_t c) { return a.scale[c] / std::sqrt(a.running_var[c] + a.epsilon); });
  ApplyEverywhere(threads, runs, a.x.dtype, a.relu,
                  {a.x.data, a.residual.data, a.y.data, mean.data(), slope.data(), bias.data()});
  return Error{};
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
