// Selection of the K largest magnitudes: exact, without sorting.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Threshold that separates the K largest magnitudes. A magnitude is the bits of |x|, which are
// ordered like the values.
struct Selection {
  bool finite = true;  // false: x holds NaN or infinity and the rest means nothing
  // The K largest are all magnitudes of at least `threshold` if `all_ties`; otherwise those above
  // `threshold` and `num_ties` of those that equal it.
  uint32_t threshold = 0;
  bool all_ties = false;
  size_t num_ties = 0;
};

// Selects the k largest magnitudes of x[0, n), 1 <= k <= n.
Selection SelectLargest(const float* x, size_t n, size_t k, int threads);

// Returns the index of the `nth` (from 1) element of exactly this magnitude. Requires that there is
// one.
size_t FindNthOfMagnitude(const float* x, size_t n, uint32_t magnitude, size_t nth, int threads);

// Writes, in order, the elements with a magnitude of at least `threshold` and their positions
// (index + base), and returns their number. `values` and `positions` have memory for kCollectSlack
// more.
constexpr size_t kCollectSlack = 64;
size_t CollectAtLeast(const float* x, size_t n, uint32_t threshold, uint32_t base, float* values,
                      uint32_t* positions);

// Does the same with one threshold per element.
size_t CollectAtLeastEach(const float* x, size_t n, const uint32_t* thresholds, uint32_t base,
                          float* values, uint32_t* positions);

}  // namespace thinwire
