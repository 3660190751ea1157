// Reads values as they lie on the wire (values.h) in a kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/half.cuh"
#include "compress/cuda/values.h"
#include "compress/half.h"

namespace thinwire {

// Returns value i; infinite or NaN if the number is.
__device__ inline float ValueAt(const WireValues& values, int64_t i) {
  switch (values.type) {
    case Values::kBF16:
      return FromBFloat(static_cast<const uint16_t*>(values.data)[i]);
    case Values::kF16:
      return ScaledOfHalf(static_cast<const uint16_t*>(values.data)[i], values.scale);
    default:
      return static_cast<const float*>(values.data)[i];
  }
}

// Returns x as bf16; what would round to infinity becomes the largest bf16.
__device__ inline uint16_t FiniteBFloat(float x) {
  return ToBFloat(x > kMaxBFloat ? kMaxBFloat : x < -kMaxBFloat ? -kMaxBFloat : x);
}

}  // namespace thinwire
