// Convolutions by cuDNN's graph API.
#pragma once

#include <memory>

#include "nn/cuda/convolution.h"
#include "nn/cuda/cudnn.h"

namespace thinwire::cuda {

// Deterministic: the first plan that cuDNN's heuristics name, in bf16 the first with tensor cores
// if there is one; the same in every process. Otherwise the fastest of the first few, timed on the
// operands of the call that prepares it. Without tf32 products of fp32 are exact. `cudnn` outlives
// it.
std::unique_ptr<Convolution> NewGraphConvolution(CudnnHandle* cudnn, const OpsOptions& options,
                                                 const Conv2dSpec& spec);

}  // namespace thinwire::cuda
