// Distance between two parameter gradients: the numbers of `thinwire probe`.
#pragma once

#include "absl/types/span.h"

namespace thinwire {

// Comparison of a gradient g with the reference g0.
struct Closeness {
  double cosine = 1;          // <g, g0> / (||g|| ||g0||); 1 when both are zero, 0 when one is
  double relative_error = 0;  // ||g - g0|| / ||g0||; 0 when both are zero, infinity when only g0 is
  double norm_ratio = 1;      // ||g|| / ||g0||; 1 when both are zero, infinity when only g0 is
};

// Accumulates sums over the pieces of two vectors, in fp64 and in order. For equal vectors cosine
// and ratio are exactly 1 and the error is exactly 0.
class GradientComparison {
 public:
  // Adds a piece of each vector; both have the same size.
  void Add(absl::Span<const float> g, absl::Span<const float> g0);
  void Add(const GradientComparison& other);

  Closeness Result() const;

 private:
  double dot_ = 0, g_squares_ = 0, g0_squares_ = 0, difference_squares_ = 0;
};

}  // namespace thinwire
