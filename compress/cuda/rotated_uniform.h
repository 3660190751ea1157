// uniform on a tensor that was rotated first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/spec.h"
#include "tensor/cuda/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::UniformEncode and UniformDecode, with Rotation::kHadamard.
Error CudaRotatedUniformEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                               uint64_t random_key, uint8_t* payload, size_t capacity,
                               size_t* bytes);
Error CudaRotatedUniformDecode(CudaDevice* device, const uint8_t* payload, size_t bytes,
                               const CodecSpec& spec, const TensorView& x);

}  // namespace thinwire
