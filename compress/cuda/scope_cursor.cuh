// Cursor that follows a thread's vectors through a tensor's contiguous scopes, with one division
// per tile.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/tile.cuh"
#include "compress/layout.h"

namespace thinwire {

// Scopes of `elements` each, and the step from a thread's vector to its next: `whole` scopes and
// `rest` elements.
struct ContiguousScopes {
  int64_t elements = 1, whole = 0, rest = 0;
};
inline ContiguousScopes ContiguousScopesOf(const Scopes& scopes) {
  return {scopes.elements, kTileStride / scopes.elements, kTileStride % scopes.elements};
}

// Position of a thread's vector: its scope and its place within it.
class ScopeCursor {
 public:
  __device__ ScopeCursor(const ContiguousScopes& scopes, int64_t element)
      : scopes_(scopes),
        scope_(element / scopes.elements),
        within_(element - scope_ * scopes.elements) {}

  // Moves to the thread's next vector.
  __device__ void Advance() {
    scope_ += scopes_.whole;
    within_ += scopes_.rest;
    if (within_ >= scopes_.elements) {
      within_ -= scopes_.elements;
      ++scope_;
    }
  }

  // Calls apply(k, line_of(scope)) for each element k of the vector. Elements from `left` on are
  // left out if they might belong to no scope.
  template <typename LineOf, typename Apply>
  __device__ void ForEach(int left, const LineOf& line_of, const Apply& apply) const {
    if (left <= 0) return;
    if (within_ + 4 <= scopes_.elements) {
      const auto line = line_of(scope_);
#pragma unroll
      for (int k = 0; k < 4; ++k) apply(k, line);
      return;
    }
    int64_t scope = scope_, within = within_;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k < left) apply(k, line_of(scope));
      if (++within == scopes_.elements) {
        within = 0;
        ++scope;
      }
    }
  }

 private:
  const ContiguousScopes& scopes_;
  int64_t scope_, within_;
};

}  // namespace thinwire
