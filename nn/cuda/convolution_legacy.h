// Convolutions by cuDNN's older, deprecated calls: for what the graph API (convolution_graph.h) has
// no plan for, and for tests.
#pragma once

#include <memory>

#include "nn/cuda/convolution.h"
#include "nn/cuda/cudnn.h"

namespace thinwire::cuda {

// Makes a convolution with the first algorithm that cuDNN's heuristics name, among the
// deterministic ones if asked. In bf16 it has no BackwardWeights, as these calls round dw to bf16.
// `cudnn` outlives it.
std::unique_ptr<Convolution> NewLegacyConvolution(CudnnHandle* cudnn, const OpsOptions& options,
                                                  const Conv2dSpec& spec);

}  // namespace thinwire::cuda
