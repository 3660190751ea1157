// Convolutions by cuDNN.
#pragma once

#include <memory>

#include "nn/cuda/convolution.h"
#include "nn/cuda/cudnn.h"

namespace thinwire::cuda {

// Convolutions by cuDNN's graph API.

// Makes a convolution from cuDNN's plans, which are tried on the operands of the call that prepares
// it. If deterministic, it takes the first plan that runs of the few that cuDNN's heuristics name
// first. In bf16 and tf32 it prefers plans with tensor cores. Every process makes the same choice.
// Otherwise it takes the fastest of the first few. Without tf32, products of fp32 are exact.
// `cudnn` outlives it.
std::unique_ptr<Convolution> NewGraphConvolution(CudnnHandle* cudnn, const OpsOptions& options,
                                                 const Conv2dSpec& spec);

// Convolutions by cuDNN's older, deprecated calls: for what the graph API has no
// plan for, and for tests.

// Makes a convolution with the first algorithm that cuDNN's heuristics name, among the
// deterministic ones if asked. In bf16 it has no BackwardWeights, as these calls round dw to bf16.
// `cudnn` outlives it.
std::unique_ptr<Convolution> NewLegacyConvolution(CudnnHandle* cudnn, const OpsOptions& options,
                                                  const Conv2dSpec& spec);

}  // namespace thinwire::cuda
