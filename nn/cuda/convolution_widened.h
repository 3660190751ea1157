// Computes the weight gradient of a bf16 convolution if a library has none for bf16 tensors.
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

// Returns make(options, spec). In bf16 it is wrapped: if its BackwardWeights is Unimplemented, x
// and dy are widened and the gradient is computed in fp32, which is slow. That may use TF32, in
// which products of bf16 are exact.
std::shared_ptr<Convolution> Widened(CudaDevice* device, const OpsOptions& options,
                                     const Conv2dSpec& spec, const MakeConvolution& make);

}  // namespace thinwire::cuda
