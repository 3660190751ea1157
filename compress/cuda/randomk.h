// randomk: of each scope the elements with the highest lots of a seed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// See CodecKernels::RandomKEncode and RandomKDecode.
Error CudaRandomKEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                        const SparseContext& context, uint8_t* payload, size_t capacity,
                        size_t* bytes);
Error CudaRandomKDecode(CudaDevice* device, const uint8_t* payload, size_t bytes,
                        const CodecSpec& spec, const SparseContext& context, const TensorView& x);

}  // namespace thinwire
