// Kept values of a sparse codec on the wire: numbers of one type or, under `values: uniform`, what
// the codec uniform makes of them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/spec.h"
#include "tensor/error.h"

namespace thinwire {

// Writes values[0, *count) as bf16, or as fp16 times the power of two for the magnitude *largest.
// All are in device memory; `most` is at least *count.
Error SubmitNarrowValues(cudaStream_t stream, const float* values, const uint64_t* count,
                         int64_t most, Values type, const uint32_t* largest, uint16_t* out);

// Values in device memory that a kernel reads: fp32, bf16, or fp16 times `scale`.
struct WireValues {
  const void* data = nullptr;
  Values type = Values::kF32;
  float scale = 1;
};

}  // namespace thinwire
