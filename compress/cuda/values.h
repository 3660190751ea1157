// The kept values of a sparse codec on the wire as numbers of one type; under `values: uniform` as
// the codec uniform has them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/spec.h"
#include "tensor/error.h"

namespace thinwire {

// Writes values[0, *count) as bf16 or as fp16 times the power of two that goes with the magnitude
// *largest, all in device memory; `most` is at least *count.
Error SubmitNarrowValues(cudaStream_t stream, const float* values, const uint64_t* count,
                         int64_t most, Values type, const uint32_t* largest, uint16_t* out);

// Values to be read in device memory: fp32, bf16, or fp16 times `scale`.
struct WireValues {
  const void* data = nullptr;
  Values type = Values::kF32;
  float scale = 1;
};

}  // namespace thinwire
