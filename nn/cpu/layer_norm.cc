#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/layer_norm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

template <typename T>
HWY_INLINE float MeanOf(const T* x, int64_t n) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  FloatVec sums = hn::Zero(d);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) sums = hn::Add(sums, LoadFloats(d, x + j));
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; j < n; ++j) sum += LoadOne(x + j);
  return sum / static_cast<float>(n);
}

// Returns the variance around `mean`. It subtracts the mean first, because the sum of squares alone
// would cancel in fp32.
template <typename T>
HWY_INLINE float VarianceOf(const T* x, int64_t n, float mean) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  FloatVec sums = hn::Zero(d);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const FloatVec v = hn::Sub(LoadFloats(d, x + j), hn::Set(d, mean));
    sums = hn::Add(sums, hn::Mul(v, v));
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; j < n; ++j) sum += (LoadOne(x + j) - mean) * (LoadOne(x + j) - mean);
  return sum / static_cast<float>(n);
}

template <typename T>
HWY_INLINE void NormalizeRow(const LayerNormForward& a, int64_t n, int64_t row) {
  const FloatTag d;
  const T* x = static_cast<const T*>(a.x.data) + row * n;
  T* y = static_cast<T*>(a.y.data) + row * n;
  const float mean = a.centred ? MeanOf(x, n) : 0.0f;
  const float rstd = 1.0f / std::sqrt(VarianceOf(x, n, mean) + a.epsilon);
  const FloatVec means = hn::Set(d, mean), rstds = hn::Set(d, rstd);
  ForEachVector(n, [&](const auto& access, int64_t j) HWY_ATTR {
    const FloatVec v = hn::Mul(hn::Sub(access.Load(d, x + j), means), rstds);
    const FloatVec scaled = hn::Mul(v, access.Load(d, a.scale + j));
    const FloatVec bias = a.bias != nullptr ? access.Load(d, a.bias + j) : hn::Zero(d);
    access.Store(hn::Add(scaled, bias), d, y + j);
  });
  if (a.centred) a.mean[row] = mean;
  a.rstd[row] = rstd;
}

// A row of the backward pass, with xhat = (x - mean) rstd and g = scale dy.
template <typename T>
struct RowGradient {
  const T* x;
  const T* dy;
  const float* scale;
  float mean, rstd;

  HWY_INLINE FloatVec Xhat(FloatTag d, int64_t j) const {
    return hn::Mul(hn::Sub(LoadFloats(d, x + j), hn::Set(d, mean)), hn::Set(d, rstd));
  }
  HWY_INLINE FloatVec G(FloatTag d, int64_t j) const {
    return hn::Mul(LoadFloats(d, dy + j), hn::LoadU(d, scale + j));
  }
  float XhatOne(int64_t j) const { return (LoadOne(x + j) - mean) * rstd; }
  float GOne(int64_t j) const { return LoadOne(dy + j) * scale[j]; }
};

// Sets *g and *product to the means of g and of g xhat.
template <typename T>
HWY_INLINE void Means(const RowGradient<T>& r, int64_t n, float* g, float* product) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  FloatVec gs = hn::Zero(d), products = hn::Zero(d);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    gs = hn::Add(gs, r.G(d, j));
    products = hn::Add(products, hn::Mul(r.G(d, j), r.Xhat(d, j)));
  }
  *g = hn::GetLane(hn::SumOfLanes(d, gs));
  *product = hn::GetLane(hn::SumOfLanes(d, products));
  for (; j < n; ++j) {
    *g += r.GOne(j);
    *product += r.GOne(j) * r.XhatOne(j);
  }
  *g /= static_cast<float>(n);
  *product /= static_cast<float>(n);
}

// Computes dx = rstd (g - mean(g) - xhat mean(g xhat)); mean(g) is left out if not centred. Adds dy
// xhat to dscale and dy to dbias.
template <typename T>
HWY_INLINE void BackwardRow(const LayerNormBackward& a, int64_t n, int64_t row, float* dscale,
                            float* dbias) {
  const FloatTag d;
  const int64_t lanes = hn::Lanes(d);
  const RowGradient<T> r{static_cast<const T*>(a.x.data) + row * n,
                         static_cast<const T*>(a.dy.data) + row * n, a.scale,
                         a.centred ? a.mean[row] : 0.0f, a.rstd[row]};
  T* dx = static_cast<T*>(a.dx.data) + row * n;
  float g = 0, product = 0;
  Means(r, n, &g, &product);
  if (!a.centred) g = 0;
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const FloatVec xhat = r.Xhat(d, j), dy = LoadFloats(d, r.dy + j);
    hn::StoreU(hn::Add(hn::LoadU(d, dscale + j), hn::Mul(dy, xhat)), d, dscale + j);
    hn::StoreU(hn::Add(hn::LoadU(d, dbias + j), dy), d, dbias + j);
    const FloatVec centred = hn::Sub(r.G(d, j), hn::Set(d, g));
    const FloatVec v = hn::Sub(centred, hn::Mul(xhat, hn::Set(d, product)));
    StoreFloats(hn::Mul(v, hn::Set(d, r.rstd)), d, dx + j);
  }
  for (; j < n; ++j) {
    dscale[j] += LoadOne(r.dy + j) * r.XhatOne(j);
    dbias[j] += LoadOne(r.dy + j);
    StoreOne((r.GOne(j) - g - r.XhatOne(j) * product) * r.rstd, dx + j);
  }
}

void NormalizeRowRange(const LayerNormForward& a, int64_t features, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    a.x.dtype == DType::kF32 ? NormalizeRow<float>(a, features, row)
                             : NormalizeRow<uint16_t>(a, features, row);
  }
}

void BackwardRowRange(const LayerNormBackward& a, int64_t features, int64_t begin, int64_t end,
                      float* dscale, float* dbias) {
  for (int64_t row = begin; row < end; ++row) {
    a.x.dtype == DType::kF32 ? BackwardRow<float>(a, features, row, dscale, dbias)
                             : BackwardRow<uint16_t>(a, features, row, dscale, dbias);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(NormalizeRowRange);
HWY_EXPORT(BackwardRowRange);

namespace cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // elements; with fewer, one thread is faster
constexpr int64_t kTileRows = 64;      // summed in fp32 before their sums go to fp64

int64_t Features(const TensorView& x) { return x.dims[x.rank - 1]; }

}  // namespace

void NormalizeRows(int threads, const LayerNormForward& arguments) {
  LayerNormForward a = arguments;
  if (a.addend.data != nullptr) {
    Add(threads, a.x, a.addend, a.sum);
    a.x = a.sum;
  }
  const int64_t features = Features(a.x), rows = a.x.elements() / features;
  ParallelRange(threads, rows, kGrain / features, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(NormalizeRowRange)(a, features, begin, end);
  });
}

void NormalizeRowsBackward(int threads, const LayerNormBackward& a) {
  const int64_t features = Features(a.x), rows = a.x.elements() / features;
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  // Tiles have a fixed number of rows and are added in order, so the sums do not depend on how many
  // threads compute them.
  std::vector<float> sums(tiles * 2 * features);  // per tile: of dscale, of dbias
  ParallelRange(threads, tiles, kGrain / (kTileRows * features), [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      float* const dscale = sums.data() + tile * 2 * features;
      HWY_DYNAMIC_DISPATCH(BackwardRowRange)
      (a, features, tile * kTileRows, std::min(rows, (tile + 1) * kTileRows), dscale,
       dscale + features);
    }
  });
  std::vector<double> totals(2 * features);
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const float* const of_tile = sums.data() + tile * 2 * features;
    for (int64_t j = 0; j < 2 * features; ++j) totals[j] += static_cast<double>(of_tile[j]);
  }
  for (int64_t j = 0; j < features; ++j) {
    a.dscale[j] += static_cast<float>(totals[j]);
    if (a.dbias != nullptr) a.dbias[j] += static_cast<float>(totals[features + j]);
  }
  if (a.addend.data != nullptr) Add(threads, a.dx, a.addend, a.dx);
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
