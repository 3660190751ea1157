// Winograd's convolution over tiles of 4 x 4 pixels of y. A tile has a value per channel at each of
// 36 points. At each point, y's values are the product of x's and the filters'
// (nn/cpu/winograd-inl.h).
//
// Images are [n, height, width, channels] in the compute type, values are fp32, filters are [out,
// in, 3, 3].

#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "nn/cpu/kernels.h"
#include "nn/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/cpu/winograd.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "nn/cpu/product-inl.h"
#include "nn/cpu/simd-inl.h"
#include "nn/cpu/winograd-inl.h"

#ifndef THINWIRE_NN_CPU_WINOGRAD_ONCE
#define THINWIRE_NN_CPU_WINOGRAD_ONCE
namespace thinwire::cpu {

inline constexpr int64_t kTile = 4;                  // pixels of a tile of y, in each direction
inline constexpr int64_t kPatch = kTile + 2;         // pixels of x that it reads, likewise
inline constexpr int64_t kPoints = kPatch * kPatch;  // values of a tile
inline constexpr int64_t kTaps = 9;                  // weights of a filter
// Channels are a multiple of kGroup; this many filters are transformed together.
inline constexpr int64_t kGroup = 16;

// Images divided into tiles, row by row. The last tiles may extend over the edges.
struct TileGrid {
  int64_t height, width;  // pixels
  int64_t down = (height + kTile - 1) / kTile, across = (width + kTile - 1) / kTile;

  int64_t per_image() const { return down * across; }
};

// Tiles [first, first + count) of a grid.
struct TileRange {
  const TileGrid& grid;
  int64_t first, count;
};

// Return the floats of the values of `rows` tiles or filters with `channels` channels, at one point
// and at all points. Points are separated by a gap. So their distance is no power of two, and the
// points of a tile do not compete for the same set of a cache.
constexpr int64_t PointFloats(int64_t rows, int64_t channels) { return rows * channels + kGroup; }
constexpr int64_t SpectrumFloats(int64_t rows, int64_t channels) {
  return kPoints * PointFloats(rows, channels);
}

}  // namespace thinwire::cpu
#endif

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

// Writes rows [begin, end) of the filters' values: a row per channel that they read, a column per
// channel that they write. With `turned` these are the filters that compute dx from dy: from out to
// in, and rotated by half a turn.
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

// Computes y = x * filters in these tiles. `work` has ConvolutionFloats floats.
void ConvolveTiles(const TensorView& x, const float* filters, const TensorView& y,
                   const TileRange& range, float* work) {
  WithType(x.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    ConvolveTyped(x.as<const T>(), x.dims[3], filters, y.as<T>(), y.dims[3], range, work);
  });
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

// Computes what filter gradients are made of: values of x and of dy for tiles [begin, end) of the
// range. `values` has GradientFloats floats for the whole range.
void ReadTiles(const TensorView& x, const TensorView& dy, const TileRange& range, int64_t begin,
               int64_t end, float* values) {
  const GradientFactors to(values, range.count, x.dims[3], dy.dims[3]);
  WithType(x.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    ReadTyped(x.as<const T>(), dy.as<const T>(), range, begin, end, to);
  });
}

// Sets the gradients of the filters' values, or adds to them, from all `values`: out rows, in
// columns; du = dm^T v.
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

// Adds the gradients of one channel of y to its weights' gradients in `sums`, [out, in, 3, 3].
void AddGradients(const float* gradients, int64_t in, int64_t out, int64_t channel, float* sums) {
  AddGradientsOfRow({const_cast<float*>(gradients), out, in, ColumnWidth()}, channel,
                    sums + channel * in * kTaps);
}

int64_t Columns(int64_t channels) { return (channels + ColumnWidth() - 1) / ColumnWidth(); }
// Counts the parts of the gradient. A part is a column of x's channels and one of y's.
int64_t GradientParts(int64_t in, int64_t out) { return Columns(in) * Columns(out); }
int64_t GradientPartFloats() { return SpectrumFloats(ColumnWidth(), ColumnWidth()); }

// Multiplies and adds for one part of the filters. `work` has GradientPartFloats floats.
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
namespace {

// Floats that a thread works on at once, to fit a core's cache. With fewer tiles than these
// minimums, filters would be read, or their gradients written, too often.
constexpr int64_t kWorkFloats = 1 << 17, kLeastTiles = 64, kLeastGradientTiles = 48;

// Divides tiles into blocks of nearly equal size, equally many per thread.
class Blocks {
 public:
  // `channels` is the number of channels of the values in work.
  Blocks(int64_t tiles, int64_t threads, int64_t least, int64_t channels)
      : tiles_(tiles), threads_(threads) {
    const int64_t most = std::max(least, kWorkFloats / (kPoints * channels));
    each_ = (tiles + threads * most - 1) / (threads * most);
  }
  int64_t most() const { return (tiles_ + threads_ * each_ - 1) / (threads_ * each_); }

  // Calls body(thread, i, first, count) for the thread's i-th block, in order.
  template <typename Body>
  void ForEach(const Body& body) const {
    ParallelFor(threads_, threads_, [&](int64_t thread) {
      for (int64_t i = 0; i < each_; ++i) {
        const int64_t block = thread * each_ + i, first = tiles_ * block / (threads_ * each_);
        body(thread, i, first, tiles_ * (block + 1) / (threads_ * each_) - first);
      }
    });
  }

 private:
  const int64_t tiles_, threads_;
  int64_t each_;
};

class WinogradConv2d final : public Conv2d {
 public:
  WinogradConv2d(OneDnn* onednn, const Conv2dSpec& spec)
      : onednn_(onednn),
        in_(spec.in_channels),
        out_(spec.out_channels),
        grid_{spec.height, spec.width} {}

  Error LoadWeights(const float* weights, const float* bias) override {
    assert(bias == nullptr);
    static_cast<void>(bias);
    weights_ = weights;
    return Guarded(onednn_, "conv2d", [&] {
      for (const bool turned : {false, true}) {
        Filters& filters = turned ? turned_ : forward_;
        filters.fresh = false;
        if (std::exchange(filters.used, false)) Transform(turned, &filters);
      }
    });
  }

  NarrowCopies narrow_copies() const override { return {}; }

  Error Forward(const TensorView& x, const TensorView& y) override {
    return Guarded(onednn_, "conv2d", [&] { Convolve(x, Fresh(/*turned=*/false), y); });
  }

  Error BackwardData(const TensorView& dy, const TensorView& dx) override {
    return Guarded(onednn_, "conv2d", [&] { Convolve(dy, Fresh(/*turned=*/true), dx); });
  }

  Error BackwardWeights(const TensorView& x, const TensorView& dy, float* weights_gradient,
                        float* bias_gradient) override {
    assert(bias_gradient == nullptr);
    static_cast<void>(bias_gradient);
    return Guarded(onednn_, "conv2d", [&] {
      // A thread's own filter gradients are large compared with the values of few tiles. Then
      // threads divide the filters instead of the tiles.
      if (Tiles(x) * (in_ + out_) < 2 * onednn_->threads * in_ * out_) {
        AddGradientsByParts(x, dy, weights_gradient);
      } else {
        AddGradientsByTiles(x, dy, weights_gradient);
      }
    });
  }

 private:
  struct Filters {
    std::vector<float> values;
    bool fresh = false;  // has the weights that were loaded last
    bool used = false;   // has been used since then
  };

  int64_t Tiles(const TensorView& images) const { return images.dims[0] * grid_.per_image(); }

  // Returns the transformed filters. Those used since the last load are transformed in LoadWeights,
  // so that no pass waits for it; others here on demand.
  const float* Fresh(bool turned) {
    Filters& filters = turned ? turned_ : forward_;
    if (!filters.fresh) Transform(turned, &filters);
    filters.used = true;
    return filters.values.data();
  }

  void Transform(bool turned, Filters* filters) {
    assert(weights_ != nullptr);
    const int64_t rows = turned ? out_ : in_, columns = turned ? in_ : out_;
    filters->values.resize(SpectrumFloats(rows, columns));
    ParallelRange(onednn_->threads, rows, 2, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(TransformFilters)
      (weights_, in_, out_, turned, begin, end, filters->values.data());
    });
    filters->fresh = true;
  }

  float* Work(int64_t floats) {
    return static_cast<float*>(onednn_->scratchpad.Get(floats * sizeof(float)));
  }
  float* Gradients(int64_t floats) {
    return static_cast<float*>(onednn_->gradients.Get(floats * sizeof(float)));
  }

  void Convolve(const TensorView& x, const float* filters, const TensorView& y) {
    const Blocks blocks(Tiles(x), onednn_->threads, kLeastTiles, in_ + out_);
    const int64_t floats =
        HWY_DYNAMIC_DISPATCH(ConvolutionFloats)(blocks.most(), x.dims[3], y.dims[3]);
    float* work = Work(onednn_->threads * floats);
    blocks.ForEach([&](int64_t thread, int64_t, int64_t first, int64_t count) {
      HWY_DYNAMIC_DISPATCH(ConvolveTiles)
      (x, filters, y, {grid_, first, count}, work + thread * floats);
    });
  }

  // Each thread sums what its tiles contribute to all filters.
  void AddGradientsByTiles(const TensorView& x, const TensorView& dy, float* sums) {
    const int64_t threads = onednn_->threads;
    const Blocks blocks(Tiles(x), threads, kLeastGradientTiles, in_ + out_);
    const int64_t floats = HWY_DYNAMIC_DISPATCH(GradientFloats)(blocks.most(), in_, out_),
                  all = SpectrumFloats(out_, in_);
    float* work = Work(threads * floats);
    float* gradients = Gradients(threads * all);
    blocks.ForEach([&](int64_t thread, int64_t i, int64_t first, int64_t count) {
      float* values = work + thread * floats;
      HWY_DYNAMIC_DISPATCH(ReadTiles)(x, dy, {grid_, first, count}, 0, count, values);
      HWY_DYNAMIC_DISPATCH(MultiplyTiles)
      (values, count, in_, out_, /*adds=*/i > 0, gradients + thread * all);
    });
    ParallelFor(threads, out_, [&](int64_t channel) {
      for (int64_t t = 0; t < threads; ++t)
        HWY_DYNAMIC_DISPATCH(AddGradients)(gradients + t * all, in_, out_, channel, sums);
    });
  }

  // Each thread sums what all tiles contribute to its filters.
  void AddGradientsByParts(const TensorView& x, const TensorView& dy, float* sums) {
    const int64_t threads = onednn_->threads, tiles = Tiles(x);
    float* values = Work(HWY_DYNAMIC_DISPATCH(GradientFloats)(tiles, in_, out_));
    ParallelRange(threads, tiles, 2, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(ReadTiles)(x, dy, {grid_, 0, tiles}, begin, end, values);
    });
    const int64_t floats = HWY_DYNAMIC_DISPATCH(GradientPartFloats)(),
                  parts = HWY_DYNAMIC_DISPATCH(GradientParts)(in_, out_);
    float* gradients = Gradients(threads * floats);
    ParallelFor(threads, threads, [&](int64_t t) {
      for (int64_t part = parts * t / threads; part < parts * (t + 1) / threads; ++part) {
        HWY_DYNAMIC_DISPATCH(AddGradientsOfPart)
        (values, tiles, in_, out_, part, gradients + t * floats, sums);
      }
    });
  }

  OneDnn* const onednn_;
  const int64_t in_, out_;
  const TileGrid grid_;
  const float* weights_ = nullptr;
  Filters forward_, turned_;
};

// bf16's direct products are twice as fast here as fp32's, so transforms do not pay for few
// channels. With AMX, direct products are faster than any of these.
bool PaysInBF16(const Conv2dSpec& spec) {
  constexpr unsigned kAmx = dnnl_cpu_isa_avx512_core_amx;
  const bool has_amx = (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & kAmx) == kAmx;
  return !has_amx && spec.in_channels * spec.out_channels >= 64 * 64;
}

}  // namespace

bool WinogradPays(const Conv2dSpec& spec) {
  const TileGrid grid{spec.height, spec.width};
  return spec.kernel == 3 && spec.stride == 1 && spec.padding == 1 && !spec.bias &&
         spec.in_channels % kGroup == 0 && spec.out_channels % kGroup == 0 &&
         2 * kPoints * grid.per_image() <= kTaps * spec.height * spec.width &&
         (spec.compute == DType::kF32 || PaysInBF16(spec));
}

std::unique_ptr<Conv2d> NewWinogradConv2d(OneDnn* onednn, const Conv2dSpec& spec) {
  assert(WinogradPays(spec));
  return std::make_unique<WinogradConv2d>(onednn, spec);
}

}  // namespace cpu
}  // namespace thinwire
#endif  // HWY_ONCE
