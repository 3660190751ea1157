// Codec threshold: keeps every magnitude from a multiple of the message's own unit on.
#pragma once

#include "compress/cuda/codec.h"
#include "compress/cuda/entries.h"
#include "tensor/cuda/device.h"

namespace thinwire {

CudaEncode CudaThresholdEncode;

// Encodes up to the copies to the host; only launches kernels. x has at most kSparseMaxElements.
// Reads x once, before that once more if the unit is not absolute, and then what is kept.
Error SubmitThresholdEncode(CudaDevice* device, const TensorView& x, const CodecSpec& spec,
                            const KernelContext& context, EntriesOnDevice* payload);

}  // namespace thinwire
