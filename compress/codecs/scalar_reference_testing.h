// Scalar reference of two codecs: their formulas as plain loops over the elements. The benchmark
// compares the kernels' speed with these.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace thinwire {

// Encodes as uniform with 8 bits, min_max over all of x, nearest. `codes` is as long as x. Returns
// {minimum, range}.
inline std::pair<float, float> ScalarUniformEncode(absl::Span<const float> x, uint8_t* codes) {
  float least = x[0], greatest = x[0];
  for (float value : x) {
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  const float range = greatest - least;
  for (size_t i = 0; i < x.size(); ++i) {
    codes[i] = static_cast<uint8_t>(std::nearbyint((x[i] - least) / range * 255));
  }
  return {least, range};
}

inline void ScalarUniformDecode(const uint8_t* codes, std::pair<float, float> grid,
                                absl::Span<float> x) {
  for (size_t i = 0; i < x.size(); ++i) x[i] = codes[i] / 255.0f * grid.second + grid.first;
}

struct ScalarEntries {
  std::vector<float> values;
  std::vector<uint32_t> positions;
};

// Encodes as topk per sample of n elements: a threshold by std::nth_element, then values and 32-bit
// positions.
inline void ScalarTopKEncode(absl::Span<const float> x, size_t n, size_t k, ScalarEntries* out) {
  std::vector<float> magnitudes(n);
  out->values.clear();
  out->positions.clear();
  for (size_t begin = 0; begin < x.size(); begin += n) {
    for (size_t i = 0; i < n; ++i) magnitudes[i] = std::fabs(x[begin + i]);
    std::nth_element(magnitudes.begin(), magnitudes.begin() + (k - 1), magnitudes.end(),
                     std::greater<float>());
    for (size_t i = begin; i < begin + n; ++i) {
      if (std::fabs(x[i]) < magnitudes[k - 1] || x[i] == 0) continue;
      out->values.push_back(x[i]);
      out->positions.push_back(static_cast<uint32_t>(i));
    }
  }
}

inline void ScalarTopKDecode(const ScalarEntries& entries, absl::Span<float> x) {
  std::fill(x.begin(), x.end(), 0.0f);
  for (size_t i = 0; i < entries.values.size(); ++i) x[entries.positions[i]] = entries.values[i];
}

}  // namespace thinwire
