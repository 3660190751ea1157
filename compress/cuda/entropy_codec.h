// Codecs with the entropy coder behind them. A payload stays on the device and only its frame
// leaves it, unless the frame would not be shorter.
#pragma once

#include "compress/cuda/codecs.h"
#include "compress/entropy/kernels.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// See EntropyKernels::EncodeFrame and DecodeFrame; `encode` and `decode` are the codec's own.
Error CudaEncodeFrame(CudaDevice* device, CudaEncode* encode, const CodecSpec& spec,
                      const TensorView& x, const KernelContext& context, const CodesView& codes,
                      const PayloadBuffer& payload, bool* is_frame);
Error CudaDecodeFrame(CudaDevice* device, CudaDecode* decode, const PayloadView& frame, size_t most,
                      const CodecSpec& spec, const KernelContext& context, const TensorView& x);

}  // namespace thinwire
