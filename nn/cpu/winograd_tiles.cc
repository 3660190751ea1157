#include "nn/cpu/winograd_tiles.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/winograd_tiles.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/product-inl.h"
#include "nn/cpu/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire {
namespace HWY_NAMESPACE {

using cpu::kGroup;
using cpu::kPatch;
using cpu::kPoints;
using cpu::kTaps;
using cpu::kTile;
using cpu::PointFloats;
using cpu::SpectrumFloats;
using cpu::TileGrid;
using cpu::TileRange;

// The place of a tile's pixels in its image, and whether all of them are inside.
struct Window {
  int64_t image, top, left;  // of the first pixel, which may be outside
  int64_t size;

  Window(const TileGrid& grid, int64_t tile, int64_t margin)
      : image(tile / grid.per_image()),
        top(tile % grid.per_image() / grid.across * kTile - margin),
        left(tile % grid.across * kTile - margin),
        size(kTile + 2 * margin) {}

  bool IsInside(const TileGrid& grid) const {
    return top >= 0 && left >= 0 && top + size <= grid.height && left + size <= grid.width;
  }
  Part Inside(const TileGrid& grid) const {
    return {std::max<int64_t>(0, -top), std::min(size, grid.height - top),
            std::max<int64_t>(0, -left), std::min(size, grid.width - left)};
  }
  int64_t Pixel(const TileGrid& grid) const {
    return (image * grid.height + top) * grid.width + left;
  }
};

// Returns the channels that Product takes at once, or that filters are transformed together with.
int64_t ColumnWidth() { return std::max<int64_t>(kGroup, kMostVectors * hn::Lanes(FloatTag())); }

// Values of tiles or filters: a matrix [rows, channels] at each point. Each is divided into columns
// of `width` channels (the last may have fewer), stored one after the other.
struct Spectrum {
  float* data;
  int64_t rows, channels, width;

  int64_t step() const { return PointFloats(rows, channels); }
  int64_t First(int64_t channel) const { return channel / width * width; }
  int64_t Width(int64_t first) const { return std::min(width, channels - first); }
  float* At(int64_t point, int64_t row, int64_t channel) const {
    const int64_t first = First(channel);
    return data + point * step() + first * rows + row * Width(first) + channel - first;
  }
  // Returns the values of one row from channel `channel` to the end of its column.
  Tile<float> Row(int64_t row, int64_t channel) const {
    return {At(0, row, channel), kPatch * step(), step()};
  }
  // Returns a factor with a row per channel, from `channel` on in its column, across all rows here.
  Factor Across(int64_t point, int64_t channel) const {
    return {At(point, 0, channel), 1, Width(First(channel))};
  }
  // Calls body(first, width) for every column.
  template <typename Body>
  HWY_INLINE void ForEachColumn(const Body& body) const {
    for (int64_t first = 0; first < channels; first += width) body(first, Width(first));
  }
};

// Transforms one tile's pixels, with zeros outside of the image, into a row of `to`.
template <typename Line, typename T>
void ReadTile(const T* images, const TileGrid& grid, const Window& window, const Spectrum& to,
              int64_t to_row) {
  const int64_t channels = to.channels;
  const T* data = images + window.Pixel(grid) * channels;
  to.ForEachColumn([&](int64_t first, int64_t width) {
    const Tile<const T> from{data + first, grid.width * channels, channels};
    if (window.IsInside(grid)) {
      Transform<Line>(width, from, Whole(), to.Row(to_row, first), Whole());
    } else {
      Transform<Line>(width, from, window.Inside(grid), to.Row(to_row, first), Whole());
    }
  });
}

// Transforms a row back into the pixels of a tile of y.
template <typename T>
void WriteTile(const Spectrum& from, int64_t from_row, const TileGrid& grid, const Window& window,
               T* images) {
  const int64_t channels = from.channels;
  T* data = images + window.Pixel(grid) * channels;
  from.ForEachColumn([&](int64_t first, int64_t width) {
    const Tile<T> to{data + first, grid.width * channels, channels};
    if (window.IsInside(grid)) {
      Transform<OutputLine>(width, from.Row(from_row, first).Read(), Whole(), to, Whole());
    } else {
      Transform<OutputLine>(width, from.Row(from_row, first).Read(), Whole(), to,
                            window.Inside(grid));
    }
  });
}

void TransformFilters(const float* weights, int64_t in, int64_t out, bool turned, int64_t begin,
                      int64_t end, float* filters) {
  const Spectrum to{filters, turned ? out : in, turned ? in : out, ColumnWidth()};
  const int64_t row_step = kTaps * (turned ? in : 1), column_step = kTaps * (turned ? 1 : in);
  HWY_ALIGN float taps[kTaps * kGroup];
  const Tile<const float> by_tap{taps, 3 * kGroup, kGroup};
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t channel = 0; channel < to.channels; channel += kGroup) {
      const float* from = weights + row * row_step + channel * column_step;
      for (int64_t i = 0; i < kGroup; ++i, from += column_step) {
        for (int64_t tap = 0; tap < kTaps; ++tap) {
          taps[tap * kGroup + i] = from[turned ? kTaps - 1 - tap : tap];
        }
      }
      Transform<FilterLine>(kGroup, by_tap, Whole(), to.Row(row, channel), Whole());
    }
  }
}

// Rounds up, as products take rows by strips.
int64_t Rows(int64_t tiles) { return (tiles + kStrip - 1) / kStrip * kStrip; }
int64_t ConvolutionFloats(int64_t tiles, int64_t in, int64_t out) {
  return SpectrumFloats(Rows(tiles), in) + SpectrumFloats(Rows(tiles), out);
}

template <typename T>
void ConvolveTyped(const T* x, int64_t in, const float* filters, T* y, int64_t out,
                   const TileRange& range, float* work) {
  const TileGrid& grid = range.grid;
  const int64_t rows = Rows(range.count);
  const Spectrum u{const_cast<float*>(filters), in, out, ColumnWidth()}, v{work, rows, in, in};
  const Spectrum m{work + SpectrumFloats(rows, in), rows, out, ColumnWidth()};
  for (int64_t i = 0; i < range.count; ++i) {
    ReadTile<InputLine>(x, grid, Window(grid, range.first + i, 1), v, i);
  }
  // At each of the 36 points one matrix product does the work of the convolution.
  for (int64_t k = 0; k < kPoints; ++k) {
    m.ForEachColumn([&](int64_t first, int64_t width) {
      Product<false>(rows, width, in, {v.At(k, 0, 0), in, 1}, u.At(k, 0, first), width,
                     m.At(k, 0, first), width);
    });
  }
  for (int64_t i = 0; i < range.count; ++i) {
    WriteTile(m, i, grid, Window(grid, range.first + i, 0), y);
  }
}

void ConvolveTiles(const TensorView& x, const float* filters, const TensorView& y,
                   const TileRange& range, float* work) {
  if (x.dtype == DType::kF32) {
    ConvolveTyped(static_cast<const float*>(x.data), x.dims[3], filters,
                  static_cast<float*>(y.data), y.dims[3], range, work);
  } else {
    ConvolveTyped(static_cast<const uint16_t*>(x.data), x.dims[3], filters,
                  static_cast<uint16_t*>(y.data), y.dims[3], range, work);
  }
}

// The values of x and of dy.
struct GradientFactors {
  Spectrum v, dm;

  GradientFactors(const float* values, int64_t tiles, int64_t in, int64_t out)
      : v{const_cast<float*>(values), tiles, in, ColumnWidth()},
        dm{v.data + SpectrumFloats(tiles, in), tiles, out, ColumnWidth()} {}
};

int64_t GradientFloats(int64_t tiles, int64_t in, int64_t out) {
  return SpectrumFloats(tiles, in) + SpectrumFloats(tiles, out);
}

inline constexpr int64_t kTilesAhead = 2;

// Prefetches the pixels of a tile that its left neighbour does not have. They are in rows of an
// image far apart, which hardware does not foresee. Gradients of weights read data that has often
// left the caches; a forward pass reads what has just been written.
template <typename T>
HWY_INLINE void PrefetchTile(const T* images, const TileGrid& grid, const Window& window,
                             int64_t channels) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const Part part = window.Inside(grid);
  const int64_t first = std::max(part.left, part.right - kTile);
  for (int64_t i = part.top; i < part.bottom; ++i) {
    const T* const pixels = images + (window.Pixel(grid) + i * grid.width + first) * channels;
    for (int64_t j = 0; j < (part.right - first) * channels; j += kLine) hwy::Prefetch(pixels + j);
  }
}

template <typename T>
void ReadTyped(const T* x, const T* dy, const TileRange& range, int64_t begin, int64_t end,
               const GradientFactors& to) {
  for (int64_t i = begin; i < end; ++i) {
    if (i + kTilesAhead < end) {
      const int64_t ahead = range.first + i + kTilesAhead;
      PrefetchTile(x, range.grid, Window(range.grid, ahead, 1), to.v.channels);
      PrefetchTile(dy, range.grid, Window(range.grid, ahead, 0), to.dm.channels);
    }
    ReadTile<InputLine>(x, range.grid, Window(range.grid, range.first + i, 1), to.v, i);
    ReadTile<OutputGradientLine>(dy, range.grid, Window(range.grid, range.first + i, 0), to.dm, i);
  }
}

void ReadTiles(const TensorView& x, const TensorView& dy, const TileRange& range, int64_t begin,
               int64_t end, float* values) {
  const GradientFactors to(values, range.count, x.dims[3], dy.dims[3]);
  if (x.dtype == DType::kF32) {
    ReadTyped(static_cast<const float*>(x.data), static_cast<const float*>(dy.data), range, begin,
              end, to);
  } else {
    ReadTyped(static_cast<const uint16_t*>(x.data), static_cast<const uint16_t*>(dy.data), range,
              begin, end, to);
  }
}

// Computes du = dm^T v, or adds it.
void MultiplyTiles(const float* values, int64_t tiles, int64_t in, int64_t out, bool adds,
                   float* gradients) {
  const GradientFactors from(values, tiles, in, out);
  const Spectrum du{gradients, out, in, ColumnWidth()};
  const auto product = adds ? Product<true> : Product<false>;
  for (int64_t k = 0; k < kPoints; ++k) {
    from.dm.ForEachColumn([&](int64_t row, int64_t rows) {
      du.ForEachColumn([&](int64_t first, int64_t width) {
        product(rows, width, tiles, from.dm.Across(k, row), from.v.At(k, 0, first), width,
                du.At(k, row, first), width);
      });
    });
  }
}

// Adds the gradients of one channel of y, a row of `du`, to [channels of x, 3, 3].
void AddGradientsOfRow(const Spectrum& du, int64_t row, float* sums) {
  HWY_ALIGN float taps[kTaps * kGroup];
  const Tile<float> by_tap{taps, 3 * kGroup, kGroup};
  for (int64_t in = 0; in < du.channels; in += kGroup) {
    Transform<FilterGradientLine>(kGroup, du.Row(row, in).Read(), Whole(), by_tap, Whole());
    for (int64_t i = 0; i < kGroup; ++i) {
      for (int64_t tap = 0; tap < kTaps; ++tap) *sums++ += taps[tap * kGroup + i];
    }
  }
}

void AddGradients(const float* gradients, int64_t in, int64_t out, int64_t channel, float* sums) {
  AddGradientsOfRow({const_cast<float*>(gradients), out, in, ColumnWidth()}, channel,
                    sums + channel * in * kTaps);
}

int64_t Columns(int64_t channels) { return (channels + ColumnWidth() - 1) / ColumnWidth(); }
// Counts the parts of the gradient. A part is a column of x's channels and one of y's.
int64_t GradientParts(int64_t in, int64_t out) { return Columns(in) * Columns(out); }
int64_t GradientPartFloats() { return SpectrumFloats(ColumnWidth(), ColumnWidth()); }

void AddGradientsOfPart(const float* values, int64_t tiles, int64_t in, int64_t out, int64_t part,
                        float* work, float* sums) {
  const GradientFactors from(values, tiles, in, out);
  const int64_t first = part % Columns(in) * ColumnWidth(),
                row = part / Columns(in) * ColumnWidth();
  const Spectrum du{work, from.dm.Width(row), from.v.Width(first), from.v.Width(first)};
  for (int64_t k = 0; k < kPoints; ++k) {
    Product<false>(du.rows, du.channels, tiles, from.dm.Across(k, row), from.v.At(k, 0, first),
                   du.channels, du.At(k, 0, 0), du.channels);
  }
  for (int64_t i = 0; i < du.rows; ++i) {
    AddGradientsOfRow(du, i, sums + ((row + i) * in + first) * kTaps);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace thinwire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire {
HWY_EXPORT(TransformFilters);
HWY_EXPORT(ConvolveTiles);
HWY_EXPORT(ConvolutionFloats);
HWY_EXPORT(ReadTiles);
HWY_EXPORT(GradientFloats);
HWY_EXPORT(MultiplyTiles);
HWY_EXPORT(AddGradients);
HWY_EXPORT(AddGradientsOfPart);
HWY_EXPORT(GradientParts);
HWY_EXPORT(GradientPartFloats);

namespace cpu {

void TransformFilters(const float* weights, int64_t in, int64_t out, bool turned, int64_t begin,
                      int64_t end, float* filters) {
  HWY_DYNAMIC_DISPATCH(TransformFilters)(weights, in, out, turned, begin, end, filters);
}

void ConvolveTiles(const TensorView& x, const float* filters, const TensorView& y,
                   const TileRange& range, float* work) {
  HWY_DYNAMIC_DISPATCH(ConvolveTiles)(x, filters, y, range, work);
}
int64_t ConvolutionFloats(int64_t tiles, int64_t in, int64_t out) {
  return HWY_DYNAMIC_DISPATCH(ConvolutionFloats)(tiles, in, out);
}

void ReadTiles(const TensorView& x, const TensorView& dy, const TileRange& range, int64_t begin,
               int64_t end, float* values) {
  HWY_DYNAMIC_DISPATCH(ReadTiles)(x, dy, range, begin, end, values);
}
int64_t GradientFloats(int64_t tiles, int64_t in, int64_t out) {
  return HWY_DYNAMIC_DISPATCH(GradientFloats)(tiles, in, out);
}

void MultiplyTiles(const float* values, int64_t tiles, int64_t in, int64_t out, bool adds,
                   float* gradients) {
  HWY_DYNAMIC_DISPATCH(MultiplyTiles)(values, tiles, in, out, adds, gradients);
}
void AddGradients(const float* gradients, int64_t in, int64_t out, int64_t channel, float* sums) {
  HWY_DYNAMIC_DISPATCH(AddGradients)(gradients, in, out, channel, sums);
}

void AddGradientsOfPart(const float* values, int64_t tiles, int64_t in, int64_t out, int64_t part,
                        float* work, float* sums) {
  HWY_DYNAMIC_DISPATCH(AddGradientsOfPart)(values, tiles, in, out, part, work, sums);
}
int64_t GradientParts(int64_t in, int64_t out) {
  return HWY_DYNAMIC_DISPATCH(GradientParts)(in, out);
}
int64_t GradientPartFloats() { return HWY_DYNAMIC_DISPATCH(GradientPartFloats)(); }

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
