// threshold: every magnitude from a multiple of the message's own unit on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cuda/entries.h"
#include "compress/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// See CodecKernels::ThresholdEncode.
Error CudaThresholdEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                          const SparseContext& context, uint8_t* payload, size_t capacity,
                          size_t* bytes);

// The same up to the copies to the host; launches only. x has at most kSparseMaxElements.
// Reads x once, before that once more for a unit that is not absolute, and then what is kept.
Error SubmitThresholdEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                            const SparseContext& context, EntriesOnDevice* payload);

}  // namespace thinwire
