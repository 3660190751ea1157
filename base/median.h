// The median of measured times.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

namespace thinwire {

// Returns the median of `values`, of which there is one at least; of an even number, the upper of
// the two in the middle. Unlike a mean, it does not follow a single slow measurement.
template <typename Value>
Value UpperMedian(std::vector<Value> values) {
  assert(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace thinwire
