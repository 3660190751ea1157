// Convolutions by cuDNN's graph API.
#pragma once

#include <memory>

#include "nn/cuda/convolution.h"
#include "nn/cuda/cudnn.h"

namespace thinwire::cuda {

// Makes a convolution from cuDNN's plans, which are tried on the operands of the call that prepares
// it. If deterministic, it takes the first plan that runs of the few that cuDNN's heuristics name
// first. In bf16 and tf32 it prefers plans with tensor cores. Every process makes the same choice.
// Otherwise it takes the fastest of the first few. Without tf32, products of fp32 are exact.
// `cudnn` outlives it.
std::unique_ptr<Convolution> NewGraphConvolution(CudnnHandle* cudnn, const OpsOptions& options,
                                                 const Conv2dSpec& spec);

}  // namespace thinwire::cuda
