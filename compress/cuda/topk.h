// Codec topk with indices of its own: keeps the largest magnitudes of each scope.
#pragma once

#include "compress/cuda/codecs.h"
#include "compress/cuda/entries.h"
#include "tensor/cuda/device.h"

namespace thinwire {

CudaEncode CudaTopKEncode;

// Encodes up to the copies to the host; only launches kernels. x has at most kSparseMaxElements.
// Reads x as often as kept.h says, and then what is kept.
Error SubmitTopKEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                       const KernelContext& context, EntriesOnDevice* payload);

}  // namespace thinwire
