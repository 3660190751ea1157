// Entries that topk and threshold keep.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/layout.h"
#include "compress/spec.h"

namespace thinwire {

// Kept entries of a tensor.
struct Kept {
  bool finite = true;  // false: the tensor holds NaN or infinity and the rest means nothing
  size_t count = 0;
  float* values = nullptr;  // in memory order, as are positions
  uint32_t* positions = nullptr;
};

// Returns the K largest of each scope of x[0, scopes.total). The arrays are this thread's memory,
// valid until its next call.
Kept KeepLargest(const float* x, const Scopes& scopes, const CodecSpec& spec, int threads);

// Returns the elements of x[0, n), all of them finite, with magnitude bits of at least `least` > 0.
// The arrays are as above.
Kept KeepAtLeast(const float* x, size_t n, uint32_t least, int threads);

}  // namespace thinwire
