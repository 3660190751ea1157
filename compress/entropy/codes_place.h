// Location of quantiser codes within a string that is to be entropy-coded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compress/spec.h"
#include "tensor/shape.h"

namespace thinwire {

// Location of a tensor's zigzag codes in a string, one byte each. Codes that stand one of
// `distances` (in codes, at least 1) before a code are likely to be of similar size.
struct CodesPlace {
  size_t begin = 0, count = 0;
  std::vector<uint32_t> distances;
};

// Returns where ecsq's payload has its codes; an empty place for other codecs. `coded` is the shape
// of the tensor or, with a support, one row of the supported entries.
CodesPlace CodesOf(const CodecSpec& spec, const Shape& coded);

}  // namespace thinwire
