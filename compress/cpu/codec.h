// Function types that every codec has on the CPU. A codec's header declares functions of these
// types: `CpuEncode CpuTopKEncode;` declares a function with CpuEncode's parameters.
#pragma once

#include "compress/kernels.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Encode and decode, see CodecKernels. `threads` threads (NewCpuCodecKernels) share the tensor.
using CpuEncode = Error(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                        const PayloadBuffer& payload, int threads);
using CpuDecode = Error(const PayloadView& payload, const CodecSpec& spec,
                        const KernelContext& context, const TensorView& x, int threads);

}  // namespace thinwire
