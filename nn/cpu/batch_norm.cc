#include "nn/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/batch_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/simd-inl.h"

#ifndef THINWIRE_NN_CPU_BATCH_NORM_ONCE
#define THINWIRE_NN_CPU_BATCH_NORM_ONCE
namespace thinwire::cpu {

// A run of rows [begin, end), each `width` elements: some pixels' channels side by side, so that
// vectors are full whatever the number of channels. After the run come `tail` < width elements
// more. Parameters are repeated to `width`.
struct Run {
  int64_t begin = 0, end = 0, width = 0, tail = 0;
};

struct ApplyArguments {
  const void* x;
  const void* residual;
  void* y;
  const float* mean;
  const float* slope;  // scale rstd
  const float* bias;
};

// How dz comes from dy.
enum class Mask {
  kNone,        // no ReLU
  kRecomputed,  // of z = (x - mean) slope + bias
  kStored       // of y; dz is written to dresidual
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
using cpu::Mask;
using cpu::Run;

constexpr int64_t kTileRows = 64;  // summed in fp32 before they go to fp64

HWY_INLINE void AddToDoubles(FloatVec v, FloatTag d, double* sums) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) sums[i] += static_cast<double>(lanes[i]);
}

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

// sums += column sums of dz; products += those of dz (x - mean).
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
void BackwardSumRun(const BackwardArguments& a, const Run& run, double* sums, double* products) {
  const int64_t lanes = hn::Lanes(FloatTag());
  for (int64_t row = run.begin; row < run.end; row += kTileRows) {
    const int64_t rows = std::min(kTileRows, run.end - row);
    int64_t j = 0;
    for (; j + 4 * lanes <= run.width; j += 4 * lanes) {
      BackwardSumTile<4, kMask, T>(a, row, j, rows, run.width, sums, products);
    }
    for (; j < run.width; j += lanes) {
      BackwardSumTile<1, kMask, T>(a, row, j, rows, run.width, sums, products);
    }
  }
  const int64_t at = run.end * run.width;
  for (int64_t j = 0; j < run.tail; ++j) {
    const float centred = LoadOne(static_cast<const T*>(a.x) + at + j) - a.mean[j];
    const T* y = kMask == Mask::kStored ? static_cast<const T*>(a.y) + at : nullptr;
    const float g = MaskedGradientOne<kMask>(a, j, centred, static_cast<const T*>(a.dy) + at, y);
    if (kMask == Mask::kStored) StoreOne(g, static_cast<T*>(a.dresidual) + at + j);
    sums[j] += static_cast<double>(g);
    products[j] += static_cast<double>(g) * static_cast<double>(centred);
  }
}

template <Mask kMask, typename T>
void BackwardApplyRun(const BackwardArguments& a, const Run& run) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  const int64_t at = run.begin * run.width;
  const T* x = static_cast<const T*>(a.x) + at;
  const T* dy = static_cast<const T*>(kMask == Mask::kStored ? a.dresidual : a.dy) + at;
  T* dx = static_cast<T*>(a.dx) + at;
  constexpr Mask kLeft = kMask == Mask::kStored ? Mask::kNone : kMask;  // dz is masked already
  for (int64_t row = run.begin; row < run.end; ++row) {
    for (int64_t j = 0; j < run.width; j += lanes) {
      const FloatVec centred = hn::Sub(LoadFloats(d, x + j), hn::LoadU(d, a.mean + j));
      const FloatVec g = MaskedGradient<kLeft, T>(a, d, j, centred, dy, nullptr);
      FloatVec v = hn::MulAdd(centred, hn::LoadU(d, a.x_slope + j), hn::LoadU(d, a.offset + j));
      v = hn::MulAdd(g, hn::LoadU(d, a.slope + j), v);
      StoreFloats(v, d, dx + j);
    }
    x += run.width;
    dy += run.width;
    dx += run.width;
  }
  for (int64_t j = 0; j < run.tail; ++j) {
    const float centred = LoadOne(x + j) - a.mean[j];
    const float g = MaskedGradientOne<kLeft, T>(a, j, centred, dy, nullptr);
    StoreOne(g * a.slope[j] + (centred * a.x_slope[j] + a.offset[j]), dx + j);
  }
}

size_t VectorLanes() { return hn::Lanes(FloatTag()); }

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

template <typename T>
void BackwardSumTyped(Mask mask, const BackwardArguments& a, const Run& run, double* sums,
                      double* products) {
  switch (mask) {
    case Mask::kNone:
      return BackwardSumRun<Mask::kNone, T>(a, run, sums, products);
    case Mask::kRecomputed:
      return BackwardSumRun<Mask::kRecomputed, T>(a, run, sums, products);
    case Mask::kStored:
      return BackwardSumRun<Mask::kStored, T>(a, run, sums, products);
  }
}

void BackwardSum(DType type, Mask mask, const BackwardArguments& a, const Run& run, double* sums,
                 double* products) {
  type == DType::kF32 ? BackwardSumTyped<float>(mask, a, run, sums, products)
                      : BackwardSumTyped<uint16_t>(mask, a, run, sums, products);
}

template <typename T>
void BackwardApplyTyped(Mask mask, const BackwardArguments& a, const Run& run) {
  switch (mask) {
    case Mask::kNone:
      return BackwardApplyRun<Mask::kNone, T>(a, run);
    case Mask::kRecomputed:
      return BackwardApplyRun<Mask::kRecomputed, T>(a, run);
    case Mask::kStored:
      return BackwardApplyRun<Mask::kStored, T>(a, run);
  }
}

void BackwardApply(DType type, Mask mask, const BackwardArguments& a, const Run& run) {
  type == DType::kF32 ? BackwardApplyTyped<float>(mask, a, run)
                      : BackwardApplyTyped<uint16_t>(mask, a, run);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(VectorLanes);
HWY_EXPORT(Sum);
HWY_EXPORT(Apply);
HWY_EXPORT(BackwardSum);
HWY_EXPORT(BackwardApply);

namespace cpu {
namespace {

constexpr int64_t kMaxRuns = 64;
constexpr int64_t kMinRunElements = 32 * 1024;  // 128 KiB of fp32

// How [pixels, channels] is cut into runs: a function of the shape and the vector length.
struct Layout {
  int64_t channels, pixels, repeat, width, rows, runs;

  explicit Layout(const TensorView& x) {
    channels = x.dims[x.rank - 1];
    pixels = channels == 0 ? 0 : x.elements() / channels;
    const int64_t lanes = HWY_DYNAMIC_DISPATCH(VectorLanes)();
    repeat = lanes / std::gcd(lanes, channels);
    while (repeat * channels < 4 * lanes) repeat *= 2;
    width = repeat * channels;
    rows = pixels / repeat;
    runs = std::clamp<int64_t>(rows * width / kMinRunElements, 1, kMaxRuns);
  }
  Run run(int64_t i) const {
    Run run{rows * i / runs, rows * (i + 1) / runs, width, 0};
    if (i + 1 == runs) run.tail = (pixels - rows * repeat) * channels;
    return run;
  }
  // Per-channel values repeated to `width`.
  template <typename Value>
  std::vector<float> RepeatEach(const Value& value) const {
    std::vector<float> repeated(width);
    for (int64_t c = 0; c < channels; ++c) repeated[c] = value(c);
    for (int64_t j = channels; j < width; ++j) repeated[j] = repeated[j - channels];
    return repeated;
  }
  std::vector<float> Repeat(const float* values) const {
    return RepeatEach([=](int64_t c) { return values[c]; });
  }
};

// Two sums per column, per run, gathered to two sums per channel in a fixed order.
class ColumnSums {
 public:
  explicit ColumnSums(const Layout& layout)
      : layout_(layout), columns_(2 * layout.width * layout.runs), channels_(2 * layout.channels) {}

  double* first(int64_t run) { return columns_.data() + 2 * layout_.width * run; }
  double* second(int64_t run) { return first(run) + layout_.width; }

  void Gather() {
    for (int64_t run = 0; run < layout_.runs; ++run) {
      for (int half = 0; half < 2; ++half) {
        const double* columns = half ? second(run) : first(run);
        double* channels = channels_.data() + half * layout_.channels;
        for (int64_t j = 0; j < layout_.width; j += layout_.channels) {
          for (int64_t c = 0; c < layout_.channels; ++c) channels[c] += columns[j + c];
        }
      }
    }
  }
  double first_of(int64_t channel) const { return channels_[channel]; }
  double second_of(int64_t channel) const { return channels_[layout_.channels + channel]; }

 private:
  const Layout& layout_;
  std::vector<double> columns_, channels_;
};

void ApplyEverywhere(int threads, const Layout& layout, DType type, bool relu,
                     const ApplyArguments& arguments) {
  ParallelFor(threads, layout.runs, [&](int64_t i) {
    HWY_DYNAMIC_DISPATCH(Apply)(type, relu, arguments, layout.run(i));
  });
}

float FirstPixel(const TensorView& x, int64_t channel) {
  return x.dtype == DType::kF32 ? LoadOne(static_cast<const float*>(x.data) + channel)
                                : LoadOne(static_cast<const uint16_t*>(x.data) + channel);
}

// Mean and rstd of every channel into `a`, and the running statistics moved.
// Sums are taken of x - x[first pixel]: near the mean, so that squares do not cancel.
void TakeStatistics(int threads, const Layout& layout, const BatchNormForward& a) {
  const std::vector<float> shift = layout.RepeatEach([&](int64_t c) { return FirstPixel(a.x, c); });
  ColumnSums sums(layout);
  ParallelFor(threads, layout.runs, [&](int64_t i) {
    HWY_DYNAMIC_DISPATCH(Sum)
    (a.x.dtype, a.x.data, layout.run(i), shift.data(), sums.first(i), sums.second(i));
  });
  sums.Gather();
  const double n = static_cast<double>(layout.pixels);
  for (int64_t c = 0; c < layout.channels; ++c) {
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
  const Layout layout(a.x);
  if (layout.pixels < 2) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "batch norm: %lld value(s) a channel, want at least 2 to train",
                     static_cast<long long>(layout.pixels));
  }
  TakeStatistics(threads, layout, a);
  const std::vector<float> mean = layout.Repeat(a.mean), bias = layout.Repeat(a.bias);
  const std::vector<float> slope =
      layout.RepeatEach([&](int64_t c) { return a.scale[c] * a.rstd[c]; });
  ApplyEverywhere(threads, layout, a.x.dtype, a.relu,
                  {a.x.data, a.residual.data, a.y.data, mean.data(), slope.data(), bias.data()});
  return Error{};
}

Error NormalizeByRunning(int threads, const BatchNormInference& a) {
  const Layout layout(a.x);
  const std::vector<float> mean = layout.Repeat(a.running_mean), bias = layout.Repeat(a.bias);
  const std::vector<float> slope = layout.RepeatEach(
      [&](int64_t c) { return a.scale[c] / std::sqrt(a.running_var[c] + a.epsilon); });
  ApplyEverywhere(threads, layout, a.x.dtype, a.relu,
                  {a.x.data, a.residual.data, a.y.data, mean.data(), slope.data(), bias.data()});
  return Error{};
}

// dx = scale rstd (dz - mean(dz) - xhat mean(dz xhat)) with xhat = (x - mean) rstd.
Error NormalizeBatchBackward(int threads, const BatchNormBackward& a) {
  const Layout layout(a.x);
  const bool residual = a.dresidual.data != nullptr;
  const Mask mask = !a.relu ? Mask::kNone : residual ? Mask::kStored : Mask::kRecomputed;
  const std::vector<float> mean = layout.Repeat(a.mean), bias = layout.Repeat(a.bias);
  const std::vector<float> slope =
      layout.RepeatEach([&](int64_t c) { return a.scale[c] * a.rstd[c]; });
  BackwardArguments arguments{a.x.data,    a.y.data,     a.dy.data,   a.dresidual.data, a.dx.data,
                              mean.data(), slope.data(), bias.data(), nullptr,          nullptr};
  if (residual && !a.relu) {
    std::memcpy(a.dresidual.data, a.dy.data, a.dy.elements() * SizeOf(a.dy.dtype));
  }

  ColumnSums sums(layout);
  ParallelFor(threads, layout.runs, [&](int64_t i) {
    HWY_DYNAMIC_DISPATCH(BackwardSum)
    (a.x.dtype, mask, arguments, layout.run(i), sums.first(i), sums.second(i));
  });
  sums.Gather();
  const double n = static_cast<double>(layout.pixels);
  for (int64_t c = 0; c < layout.channels; ++c) {
    a.dbias[c] += static_cast<float>(sums.first_of(c));
    a.dscale[c] += static_cast<float>(sums.second_of(c) * static_cast<double>(a.rstd[c]));
  }
  const std::vector<float> offset = layout.RepeatEach([&](int64_t c) {
    return static_cast<float>(-static_cast<double>(slope[c]) * sums.first_of(c) / n);
  });
  const std::vector<float> x_slope = layout.RepeatEach([&](int64_t c) {
    const double rstd = static_cast<double>(a.rstd[c]);
    return static_cast<float>(-static_cast<double>(slope[c]) * rstd * rstd * sums.second_of(c) / n);
  });
  arguments.offset = offset.data();
  arguments.x_slope = x_slope.data();
  ParallelFor(threads, layout.runs, [&](int64_t i) {
    HWY_DYNAMIC_DISPATCH(BackwardApply)(a.x.dtype, mask, arguments, layout.run(i));
  });
  return Error{};
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
