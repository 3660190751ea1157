// Arithmetic of threshold, with the same results on CPU and GPU.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "compress/half.h"

namespace thinwire {

// Returns the bits of the least fp32 magnitude that is at least `threshold` and not zero; those of
// infinity if no finite one is.
HOST_DEVICE inline uint32_t LeastMagnitude(double threshold) {
  if (threshold > double{FloatOf(kInfinityBits - 1)}) return kInfinityBits;
  const float nearest = static_cast<float>(threshold);
  const uint32_t bits = BitsOf(nearest) + (double{nearest} < threshold);
  return bits > 1 ? bits : 1;
}

}  // namespace thinwire
