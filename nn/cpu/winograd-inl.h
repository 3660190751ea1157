// The transforms of Winograd's convolution, for every Highway target. A polynomial of degree 5 is
// determined by its values at 0, a, -a, b, -b and by its leading coefficient. At these six points a
// convolution is a product. Lines of four, three and six numbers are transformed by the matrices
// that the paper calls A, G and B, here for any a and b. A tile is transformed along its columns,
// then along its rows.

#if defined(THINWIRE_NN_CPU_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_NN_CPU_WINOGRAD_INL_H_
#undef THINWIRE_NN_CPU_WINOGRAD_INL_H_
#else
#define THINWIRE_NN_CPU_WINOGRAD_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "nn/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

// The paper takes 1 and 2. These values round two to four times as finely, and their products are
// exact.
inline constexpr float kA = 0.625f, kB = 1.5f;
inline constexpr float kA2 = kA * kA, kB2 = kB * kB;
// Products of a point's differences from the other points, by which Lagrange's polynomials divide.
inline constexpr float kAt0 = kA2 * kB2, kAtA = 2 * kA2 * (kA2 - kB2), kAtB = 2 * kB2 * (kB2 - kA2);

HWY_INLINE FloatVec Times(float factor, FloatVec v) {
  return hn::Mul(hn::Set(FloatTag(), factor), v);
}
// Returns factor v + w.
HWY_INLINE FloatVec TimesPlus(float factor, FloatVec v, FloatVec w) {
  return hn::MulAdd(hn::Set(FloatTag(), factor), v, w);
}

// Transforms six pixels to their six values: v = B^T d. Values at a and -a share their even and odd
// parts, which halves the multiplications; so it is in all five transforms.
struct InputLine {
  static constexpr int kFrom = 6, kTo = 6;
  HWY_INLINE void operator()(const FloatVec* d, FloatVec* v) const {
    const FloatVec even_a = TimesPlus(-kB2, d[2], d[4]),
                   odd_a = Times(kA, TimesPlus(-kB2, d[1], d[3]));
    const FloatVec even_b = TimesPlus(-kA2, d[2], d[4]),
                   odd_b = Times(kB, TimesPlus(-kA2, d[1], d[3]));
    v[0] = TimesPlus(kAt0, d[0], TimesPlus(-(kA2 + kB2), d[2], d[4]));
    v[1] = hn::Add(even_a, odd_a);
    v[2] = hn::Sub(even_a, odd_a);
    v[3] = hn::Add(even_b, odd_b);
    v[4] = hn::Sub(even_b, odd_b);
    v[5] = TimesPlus(kAt0, d[1], TimesPlus(-(kA2 + kB2), d[3], d[5]));
  }
};

// Transforms the six values of a product to four pixels: y = A^T m.
struct OutputLine {
  static constexpr int kFrom = 6, kTo = 4;
  HWY_INLINE void operator()(const FloatVec* m, FloatVec* y) const {
    const FloatVec even_a = hn::Add(m[1], m[2]), odd_a = hn::Sub(m[1], m[2]);
    const FloatVec even_b = hn::Add(m[3], m[4]), odd_b = hn::Sub(m[3], m[4]);
    y[0] = hn::Add(m[0], hn::Add(even_a, even_b));
    y[1] = TimesPlus(kA, odd_a, Times(kB, odd_b));
    y[2] = TimesPlus(kA2, even_a, Times(kB2, even_b));
    y[3] = hn::Add(m[5], TimesPlus(kA * kA2, odd_a, Times(kB * kB2, odd_b)));
  }
};

// Transforms the gradient of four pixels to that of six values: A dy.
struct OutputGradientLine {
  static constexpr int kFrom = 4, kTo = 6;
  HWY_INLINE void operator()(const FloatVec* dy, FloatVec* dm) const {
    const FloatVec even_a = TimesPlus(kA2, dy[2], dy[0]),
                   odd_a = Times(kA, TimesPlus(kA2, dy[3], dy[1]));
    const FloatVec even_b = TimesPlus(kB2, dy[2], dy[0]),
                   odd_b = Times(kB, TimesPlus(kB2, dy[3], dy[1]));
    dm[0] = dy[0];
    dm[1] = hn::Add(even_a, odd_a);
    dm[2] = hn::Sub(even_a, odd_a);
    dm[3] = hn::Add(even_b, odd_b);
    dm[4] = hn::Sub(even_b, odd_b);
    dm[5] = dy[3];
  }
};

// Transforms three weights to their six values: G g.
struct FilterLine {
  static constexpr int kFrom = 3, kTo = 6;
  HWY_INLINE void operator()(const FloatVec* g, FloatVec* u) const {
    const FloatVec even_a = Times(1 / kAtA, TimesPlus(kA2, g[2], g[0])),
                   odd_a = Times(kA / kAtA, g[1]);
    const FloatVec even_b = Times(1 / kAtB, TimesPlus(kB2, g[2], g[0])),
                   odd_b = Times(kB / kAtB, g[1]);
    u[0] = Times(1 / kAt0, g[0]);
    u[1] = hn::Add(even_a, odd_a);
    u[2] = hn::Sub(even_a, odd_a);
    u[3] = hn::Add(even_b, odd_b);
    u[4] = hn::Sub(even_b, odd_b);
    u[5] = g[2];
  }
};

// Transforms the gradient of six values to that of three weights: G^T du.
struct FilterGradientLine {
  static constexpr int kFrom = 6, kTo = 3;
  HWY_INLINE void operator()(const FloatVec* du, FloatVec* dg) const {
    const FloatVec even_a = Times(1 / kAtA, hn::Add(du[1], du[2]));
    const FloatVec even_b = Times(1 / kAtB, hn::Add(du[3], du[4]));
    dg[0] = TimesPlus(1 / kAt0, du[0], hn::Add(even_a, even_b));
    dg[1] = TimesPlus(kA / kAtA, hn::Sub(du[1], du[2]), Times(kB / kAtB, hn::Sub(du[3], du[4])));
    dg[2] = hn::Add(du[5], TimesPlus(kA2, even_a, Times(kB2, even_b)));
  }
};

// A tile whose element (i, j) in its first channel is data[i row + j column]. The other channels
// follow there.
template <typename T>
struct Tile {
  T* data;
  int64_t row, column;

  Tile<const T> Read() const { return {data, row, column}; }
};

// The elements of a tile that exist.
struct Part {
  int64_t top, bottom, left, right;  // bottom and right are the first that do not exist

  HWY_INLINE bool HasRow(int64_t i) const { return i >= top && i < bottom; }
  HWY_INLINE bool HasColumn(int64_t j) const { return j >= left && j < right; }
};
struct Whole {
  HWY_INLINE bool HasRow(int64_t) const { return true; }
  HWY_INLINE bool HasColumn(int64_t) const { return true; }
};

// Transforms `channels` channels, a multiple of a vector's lanes. Elements of `from` that do not
// exist count as zero; those of `to` are dropped.
template <typename Line, typename From, typename FromPart, typename To, typename ToPart>
HWY_INLINE void Transform(int64_t channels, const Tile<const From>& from, const FromPart& from_part,
                          const Tile<To>& to, const ToPart& to_part) {
  const FloatTag d;
  const Line line;
  for (int64_t c = 0; c < channels; c += hn::Lanes(d)) {
    // First along the columns of the tile, into `half`, then along its rows.
    FloatVec half[Line::kTo][Line::kFrom];
    for (int j = 0; j < Line::kFrom; ++j) {
      FloatVec in[Line::kFrom], out[Line::kTo];
      for (int i = 0; i < Line::kFrom; ++i) {
        in[i] = from_part.HasColumn(j) && from_part.HasRow(i)
                    ? LoadFloats(d, from.data + i * from.row + j * from.column + c)
                    : hn::Zero(d);
      }
      line(in, out);
      for (int i = 0; i < Line::kTo; ++i) half[i][j] = out[i];
    }
    for (int i = 0; i < Line::kTo; ++i) {
      if (!to_part.HasRow(i)) continue;
      FloatVec out[Line::kTo];
      line(half[i], out);
      for (int j = 0; j < Line::kTo; ++j) {
        if (to_part.HasColumn(j)) StoreFloats(out[j], d, to.data + i * to.row + j * to.column + c);
      }
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
