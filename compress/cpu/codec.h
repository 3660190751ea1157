// The form that every codec has on the CPU. A codec's header declares functions of these types:
// `CpuEncode CpuTopKEncode;` is the declaration of a function with CpuEncode's parameters.
#pragma once

#include "compress/kernels.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// See CodecKernels::Encode and Decode. `threads` of NewCpuCodecKernels share the tensor.
using CpuEncode = Error(const CodecSpec& spec, const TensorView& x, const KernelContext& context,
                        const PayloadBuffer& payload, int threads);
using CpuDecode = Error(const PayloadView& payload, const CodecSpec& spec,
                        const KernelContext& context, const TensorView& x, int threads);

}  // namespace thinwire
