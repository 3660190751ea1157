// The kernels of Winograd's convolution over tiles of 4 x 4 pixels of y; winograd.cc decides which
// thread runs them on which tiles. A tile has a value per channel at each of 36 points. At each
// point, y's values are the product of x's and the filters' (nn/cpu/winograd-inl.h).
//
// Images are [n, height, width, channels] in the compute type, values are fp32, filters are [out,
// in, 3, 3].
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

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

// Writes rows [begin, end) of the filters' values: a row per channel that they read, a column per
// channel that they write. With `turned` these are the filters that compute dx from dy: from out to
// in, and rotated by half a turn.
void TransformFilters(const float* weights, int64_t in, int64_t out, bool turned, int64_t begin,
                      int64_t end, float* filters);

// Computes y = x * filters in these tiles. `work` has ConvolutionFloats floats.
void ConvolveTiles(const TensorView& x, const float* filters, const TensorView& y,
                   const TileRange& range, float* work);
int64_t ConvolutionFloats(int64_t tiles, int64_t in, int64_t out);

// Computes what filter gradients are made of: values of x and of dy for tiles [begin, end) of the
// range. `values` has GradientFloats floats for the whole range.
void ReadTiles(const TensorView& x, const TensorView& dy, const TileRange& range, int64_t begin,
               int64_t end, float* values);
int64_t GradientFloats(int64_t tiles, int64_t in, int64_t out);

// Sets the gradients of the filters' values, or adds to them, from all `values`: out rows, in
// columns.
void MultiplyTiles(const float* values, int64_t tiles, int64_t in, int64_t out, bool adds,
                   float* gradients);
// Adds the gradients of one channel of y to its weights' gradients in `sums`, [out, in, 3, 3].
void AddGradients(const float* gradients, int64_t in, int64_t out, int64_t channel, float* sums);

// Does both for one of GradientParts parts of the filters. `work` has GradientPartFloats floats.
void AddGradientsOfPart(const float* values, int64_t tiles, int64_t in, int64_t out, int64_t part,
                        float* work, float* sums);
int64_t GradientParts(int64_t in, int64_t out);
int64_t GradientPartFloats();

}  // namespace thinwire::cpu
