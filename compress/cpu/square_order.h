// Order in which a sum of squares is taken, the same on CPU and GPU. It is part of the payload's
// definition (docs/compression.md): sixteen lanes of each stretch of 4096 elements, which suits
// both vectors and thread blocks.
#pragma once

#include <cstdint>

namespace thinwire {

constexpr int64_t kSquareStretch = 4096;
constexpr int64_t kSquareLanes = 16;

}  // namespace thinwire
