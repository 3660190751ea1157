// The weight gradient of a bf16 convolution where a library has none of bf16 tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "nn/cuda/convolution.h"
#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

using MakeConvolution =
    std::function<std::shared_ptr<Convolution>(const OpsOptions&, const Conv2dSpec&)>;

// make(options, spec); in bf16, one whose BackwardWeights, when Unimplemented, widens x and dy and
// computes in fp32, which is slow. It may use TF32, in which products of
// bf16 are exact.
std::shared_ptr<Convolution> Widened(CudaDevice* device, const OpsOptions& options,
                                     const Conv2dSpec& spec, const MakeConvolution& make);

}  // namespace thinwire::cuda
