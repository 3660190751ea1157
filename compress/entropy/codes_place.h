// Where a string that is to be coded has codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compress/spec.h"
#include "tensor/shape.h"

namespace thinwire {

// Where a string has zigzag codes of a tensor, a byte each, and how far before one those stand that
// are likely to be of its size: at least 1, in codes.
struct CodesPlace {
  size_t begin = 0, count = 0;
  std::vector<uint32_t> distances;
};

// Where ecsq's payload of a tensor has them; none of other codecs. `coded`: the tensor's shape, or
// that of the entries that a support has, as one row.
CodesPlace CodesOf(const CodecSpec& spec, const Shape& coded);

}  // namespace thinwire
