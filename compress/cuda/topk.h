// topk with indices of its own: the largest magnitudes of each scope.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cuda/entries.h"
#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// See CodecKernels::TopKEncode.
Error CudaTopKEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                     const SparseContext& context, uint8_t* payload, size_t capacity,
                     size_t* bytes);

// The same up to the copies to the host; launches only. x has at most kSparseMaxElements. Reads x
// as often as kept.h says, and then what is kept.
Error SubmitTopKEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                       const SparseContext& context, EntriesOnDevice* payload);

}  // namespace thinwire
