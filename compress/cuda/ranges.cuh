// Ranges of uniform's scopes as they travel: read in a kernel, written from extremes, and checked.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cpu/range_line.h"
#include "compress/cuda/extremes.h"
#include "compress/cuda/uniform.h"
#include "compress/layout.h"
#include "compress/spec.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Header of a payload of uniform, in device memory.
struct RangeHeader {
  const uint8_t* bytes;
  Range range;

  __device__ const float* floats() const { return reinterpret_cast<const float*>(bytes); }
  // For fixed_point: the exponent, then a half per scope.
  __device__ int exponent() const { return *reinterpret_cast<const int16_t*>(bytes); }
  __device__ uint16_t half(int64_t scope) const {
    return reinterpret_cast<const uint16_t*>(bytes)[1 + scope];
  }

  __device__ DecodeLine Read(int64_t scope) const {
    switch (range) {
      case Range::kMinMax:
        return {floats()[2 * scope], floats()[2 * scope + 1]};
      case Range::kMaxAbs:
        return {0, floats()[scope]};
      case Range::kFixedPoint:
        return {0, FixedPointRange(half(scope), exponent())};
    }
    return {};
  }
};

// Writes UniformHeaderBytes bytes at an even address (a multiple of 4 except under fixed_point).
// *found is all zero before.
Error SubmitRanges(CudaDevice* device, const Extremes* extremes, const CodecSpec& spec,
                   const Scopes& scopes, uint8_t* header, UniformEncoded* found);

// Sets *refused to 1 if a range is refused. Requires CheckExponent.
Error SubmitCheckRanges(CudaDevice* device, const uint8_t* header, const CodecSpec& spec,
                        const Scopes& scopes, uint32_t* refused);

}  // namespace thinwire
