// Kept values as cells with means (compress/cpu/mean_values.h), in device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/spec.h"
#include "tensor/error.h"

namespace thinwire {

// Writes the ValueBytes(spec, n) bytes of finite values[0, n), n > 0, to `out`, which is aligned
// for floats. `cells` is memory for n bytes. Only launches kernels, as the next function.
Error SubmitMeanValues(cudaStream_t stream, const float* values, int64_t n, const CodecSpec& spec,
                       uint8_t* cells, uint8_t* out);

// Reads n > 0 values from ValueBytes(spec, n) bytes, aligned for floats and with a byte behind
// them. They are not finite where a mean is not.
Error SubmitReadMeanValues(cudaStream_t stream, const uint8_t* from, int64_t n,
                           const CodecSpec& spec, float* values);

}  // namespace thinwire
