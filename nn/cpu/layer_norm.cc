#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
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

void CopyRow(const TensorView& from, int64_t n, int64_t row, const TensorView& to) {
  const size_t bytes = static_cast<size_t>(n) * SizeOf(from.dtype);
  std::memcpy(static_cast<char*>(to.data) + static_cast<size_t>(row) * bytes,
              static_cast<const char*>(from.data) + static_cast<size_t>(row) * bytes, bytes);
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

// Does the same for heads, of which each is a row; those of values are copied.
void NormalizeHeadRange(const HeadNormForward& a, int64_t begin, int64_t end) {
  LayerNormForward of_row;
  of_row.x = a.x;
  of_row.y = a.y;
  of_row.rstd = a.rstd;
  of_row.epsilon = a.epsilon;
  of_row.centred = false;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t head = row % a.all_heads();
    of_row.scale = a.scale + (head < a.heads ? 0 : a.head_size);
    head < a.heads + a.kv_heads ? NormalizeRowRange(of_row, a.head_size, row, row + 1)
                                : CopyRow(a.x, a.head_size, row, a.y);
  }
}

// Adds to the gradients of both scales; `unused` is memory for a bias's.
void BackwardHeadRange(const HeadNormBackward& a, int64_t begin, int64_t end, float* dscale,
                       float* unused) {
  LayerNormBackward of_row;
  of_row.x = a.x;
  of_row.dy = a.dy;
  of_row.dx = a.dx;
  of_row.rstd = a.rstd;
  of_row.centred = false;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t head = row % a.all_heads(), at = head < a.heads ? 0 : a.head_size;
    of_row.scale = a.scale + at;
    head < a.heads + a.kv_heads
        ? BackwardRowRange(of_row, a.head_size, row, row + 1, dscale + at, unused)
        : CopyRow(a.dy, a.head_size, row, a.dx);
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
HWY_EXPORT(NormalizeHeadRange);
HWY_EXPORT(BackwardHeadRange);

namespace cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // elements; with fewer, one thread is faster
constexpr int64_t kTileRows = 64;      // summed in fp32 before their sums go to fp64

int64_t Features(const TensorView& x) { return x.dims[x.rank - 1]; }

int64_t TilesOf(int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

// Adds up tiles' sums, [tiles, step], in order.
std::vector<double> TotalsOf(const std::vector<float>& sums, int64_t step) {
  std::vector<double> totals(step);
  for (size_t i = 0; i < sums.size(); ++i) {
    totals[i % static_cast<size_t>(step)] += static_cast<double>(sums[i]);
  }
  return totals;
}

}  // namespace

Error Kernels::NormalizeRows(const LayerNormForward& arguments) {
  LayerNormForward a = arguments;
  if (a.addend.data != nullptr) {
    RETURN_ERROR(Add(a.x, a.addend, a.sum));
    a.x = a.sum;
  }
  const int64_t features = Features(a.x), rows = a.x.elements() / features;
  ParallelRange(threads_, rows, kGrain / features, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(NormalizeRowRange)(a, features, begin, end);
  });
  return Error{};
}

Error Kernels::NormalizeRowsBackward(const LayerNormBackward& a) {
  const int64_t features = Features(a.x), rows = a.x.elements() / features;
  const int64_t tiles = TilesOf(rows);
  // Tiles have a fixed number of rows and are added in order, so the sums do not depend on how many
  // threads_ compute them.
  std::vector<float> sums(tiles * 2 * features);  // per tile: of dscale, of dbias
  ParallelRange(threads_, tiles, kGrain / (kTileRows * features), [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      float* const dscale = sums.data() + tile * 2 * features;
      HWY_DYNAMIC_DISPATCH(BackwardRowRange)
      (a, features, tile * kTileRows, std::min(rows, (tile + 1) * kTileRows), dscale,
       dscale + features);
    }
  });
  const std::vector<double> totals = TotalsOf(sums, 2 * features);
  for (int64_t j = 0; j < features; ++j) {
    if (a.dscale != nullptr) a.dscale[j] += static_cast<float>(totals[j]);
    if (a.dbias != nullptr) a.dbias[j] += static_cast<float>(totals[features + j]);
  }
  return a.addend.data != nullptr ? Add(a.dx, a.addend, a.dx) : Error{};
}

Error Kernels::NormalizeHeads(const HeadNormForward& a) {
  const int64_t rows = a.x.elements() / a.head_size;
  ParallelRange(threads_, rows, kGrain / a.head_size, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(NormalizeHeadRange)(a, begin, end);
  });
  return Error{};
}

Error Kernels::NormalizeHeadsBackward(const HeadNormBackward& a) {
  const int64_t rows = a.x.elements() / a.head_size, tiles = TilesOf(rows);
  const int64_t step = 3 * a.head_size;  // of both scales, and what nobody wants
  std::vector<float> sums(tiles * step);
  ParallelRange(threads_, tiles, kGrain / (kTileRows * a.head_size),
                [&](int64_t begin, int64_t end) {
                  for (int64_t tile = begin; tile < end; ++tile) {
                    float* const dscale = sums.data() + tile * step;
                    HWY_DYNAMIC_DISPATCH(BackwardHeadRange)
                    (a, tile * kTileRows, std::min(rows, (tile + 1) * kTileRows), dscale,
                     dscale + 2 * a.head_size);
                  }
                });
  if (a.dscale == nullptr) return Error{};
  const std::vector<double> totals = TotalsOf(sums, step);
  for (int64_t j = 0; j < 2 * a.head_size; ++j) a.dscale[j] += static_cast<float>(totals[j]);
  return Error{};
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
