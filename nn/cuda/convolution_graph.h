// Convolutions by cuDNN's graph API.
#pragma once

#include <memory>

#include "nn/cuda/convolution.h"
#include "nn/cuda/cudnn.h"

namespace thinwire::cuda {

// Deterministic: the first plan that runs of the few that cuDNN's heuristics name first, in bf16
// and tf32 of those with tensor cores if one does; the same in every process. Otherwise the fastest
// of the first few. They are tried on the operands of the call that prepares it. Without tf32
// products of fp32 are exact. `cudnn` outlives it.
std::unique_ptr<Convolution> NewGraphConvolution(CudnnHandle* cudnn, const OpsOptions& options,
                                                 const Conv2dSpec& spec);

}  // namespace thinwire::cuda
