// The kernels of Winograd's convolution over tiles of 4 x 4 pixels of y; who runs them on which
// tiles is in winograd.cc. At each of 36 points a tile has a value for each channel, and at each
// point y's values are the product of x's and the filters' (nn/cpu/winograd-inl.h).
//
// Images are [n, height, width, channels] in the compute type, values fp32, filters [out, in, 3,
// 3].
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace thinwire::cpu {

inline constexpr int64_t kTile = 4;                  // pixels of a tile of y, each way
inline constexpr int64_t kPatch = kTile + 2;         // of what it reads of x
inline constexpr int64_t kPoints = kPatch * kPatch;  // values of a tile
inline constexpr int64_t kTaps = 9;                  // weights of a filter
inline constexpr int64_t kGroup = 16;  // channels are multiples of it; filters transformed together

// Images cut into tiles, row by row. The last ones may reach over the edges.
struct TileGrid {
  int64_t height, width;  // pixels
  int64_t down = (height + kTile - 1) / kTile, across = (width + kTile - 1) / kTile;

  int64_t per_image() const { return down * across; }
};

// Tiles [first, first + count).
struct TileRange {
  const TileGrid& grid;
  int64_t first, count;
};

// Floats of the values of as many tiles, or filters, of so many channels. A point's are followed by
// a gap, so that their distance is no power of two and the points of a tile do not share a cache's
// set.
constexpr int64_t PointFloats(int64_t rows, int64_t channels) { return rows * channels + kGroup; }
constexpr int64_t SpectrumFloats(int64_t rows, int64_t channels) {
  return kPoints * PointFloats(rows, channels);
}

// The values of filters: a row for each channel that they read, a column for each that they write.
// Turned: of those that make dx of dy, from out to in and rotated by half a turn. Writes rows
// [begin, end) of `filters`.
void TransformFilters(const float* weights, int64_t in, int64_t out, bool turned, int64_t begin,
                      int64_t end, float* filters);

// y = x * filters in these tiles. `work`: ConvolutionFloats.
void ConvolveTiles(const TensorView& x, const float* filters, const TensorView& y,
                   const TileRange& range, float* work);
int64_t ConvolutionFloats(int64_t tiles, int64_t in, int64_t out);

// What gradients of filters are made of: values of x and of dy, of tiles [begin, end) of the range.
// `values`: GradientFloats for all of the range.
void ReadTiles(const TensorView& x, const TensorView& dy, const TileRange& range, int64_t begin,
               int64_t end, float* values);
int64_t GradientFloats(int64_t tiles, int64_t in, int64_t out);

// The gradients of the filters' values, of all of `values`, or that added: out rows, in columns.
void MultiplyTiles(const float* values, int64_t tiles, int64_t in, int64_t out, bool adds,
                   float* gradients);
// Adds those of one channel of y to the gradients of its weights in `sums`, [out, in, 3, 3].
void AddGradients(const float* gradients, int64_t in, int64_t out, int64_t channel, float* sums);

// Both at once for one of GradientParts parts of the filters. `work`: GradientPartFloats.
void AddGradientsOfPart(const float* values, int64_t tiles, int64_t in, int64_t out, int64_t part,
                        float* work, float* sums);
int64_t GradientParts(int64_t in, int64_t out);
int64_t GradientPartFloats();

}  // namespace thinwire::cpu
