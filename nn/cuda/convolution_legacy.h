// Convolutions by cuDNN's older, deprecated calls: the plain twin of convolution_graph.h, for what
// the graph API has no plan for, and for tests.
#pragma once

#include <memory>

#include "nn/cuda/convolution.h"
#include "nn/cuda/cudnn.h"

namespace thinwire::cuda {

// The first algorithm that cuDNN's heuristics name, among the deterministic ones if asked. In bf16
// it has no BackwardWeights: these calls round dw to bf16. `cudnn` outlives it.
std::unique_ptr<Convolution> NewLegacyConvolution(CudnnHandle* cudnn, const OpsOptions& options,
                                                  const Conv2dSpec& spec);

}  // namespace thinwire::cuda
