// topk's choice: which entries of a tensor are kept.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/layout.h"
#include "compress/spec.h"

namespace thinwire {

struct Kept {
  bool finite = true;  // false: the tensor holds NaN or infinity and the rest means nothing
  size_t count = 0;
  float* values = nullptr;  // in memory order, as are positions
  const uint32_t* positions = nullptr;
};

// Of x[0, scopes.total). The arrays are this thread's until its next call.
Kept KeepLargest(const float* x, const Scopes& scopes, const CodecSpec& spec);

}  // namespace thinwire
