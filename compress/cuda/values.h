// Kept values of a sparse codec on the wire: numbers of one type, cells with means or, under
// `values: uniform`, what the codec uniform makes of them.
#pragma once

#include <cstdint>

#include "compress/spec.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Writes values[0, *count) as bf16, or as fp16 times the power of two for the magnitude *largest.
// All are in device memory; `most` is at least *count.
Error SubmitNarrowValues(CudaDevice* device, const float* values, const uint64_t* count,
                         int64_t most, Values type, const uint32_t* largest, uint16_t* out);

// Values in device memory that a kernel reads: fp32, bf16, or fp16 times `scale`.
struct WireValues {
  const void* data = nullptr;
  Values type = Values::kF32;
  float scale = 1;
};

// Writes finite values[0, n), n > 0, as cells with means (compress/cpu/mean_values.h): the
// ValueBytes(spec, n) bytes at `out`, which is aligned for floats. `cells` is memory for n bytes.
// Only launches kernels, as the next function.
Error SubmitMeanValues(CudaDevice* device, const float* values, int64_t n, const CodecSpec& spec,
                       uint8_t* cells, uint8_t* out);

// Reads n > 0 such values from ValueBytes(spec, n) bytes, aligned for floats and with a byte behind
// them. They are not finite where a mean is not.
Error SubmitReadMeanValues(CudaDevice* device, const uint8_t* from, int64_t n,
                           const CodecSpec& spec, float* values);

}  // namespace thinwire
