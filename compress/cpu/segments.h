// Division of a block of elements into segments of single scopes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "compress/cpu/parallel.h"
#include "compress/layout.h"

namespace thinwire {

// Cuts [begin, begin + n) at multiples of `period` and calls
// visit(offset in the block, length, whole periods before it, phase in its period).
template <typename Visit>
void ForEachSegment(int64_t begin, size_t n, int64_t period, Visit visit) {
  int64_t index = begin / period;
  int64_t phase = begin % period;
  for (size_t offset = 0; offset < n;) {
    const size_t length = std::min<int64_t>(n - offset, period - phase);
    visit(offset, length, index, phase);
    offset += length;
    ++index;
    phase = 0;
  }
}

// Returns the scope of an element.
inline int64_t ScopeAt(const Scopes& scopes, int64_t element) {
  return scopes.strided ? element % scopes.count : element / scopes.elements;
}

// Returns whether threads share each scope, one scope after the other, because there are too few
// scopes for each thread to take whole ones. Not for strided scopes.
inline bool SplitsScopes(const Scopes& scopes, int threads) {
  return scopes.count < threads && scopes.elements > kMostOfOneThread;
}

// Returns a multiple of scopes.count, for strided scopes, which repeat every `count` elements.
// Parameters laid out for this many elements keep vectors full even with few channels.
inline int64_t PeriodOf(const Scopes& scopes) {
  constexpr int64_t kEnough = 512;
  return (kEnough + scopes.count - 1) / scopes.count * scopes.count;
}

}  // namespace thinwire
