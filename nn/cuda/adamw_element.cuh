// The update of AdamW, with the operations of nn/cpu/adamw-inl.h, each rounded by itself.
#pragma once

#include <cuda_runtime.h>

#include "nn/adamw_factors.h"

namespace thinwire::cuda {

// Updates an element and its means from its scaled gradient.
__device__ inline void UpdateByAdamW(const AdamWFactors& f, float shrink, float g, float* value,
                                     float* mean, float* square) {
  *mean = f.beta1 * *mean + f.gain1 * g;
  *square = f.beta2 * *square + f.gain2 * (g * g);
  const float deviation = sqrtf(*square) * f.deviation_scale;
  *value = shrink * *value - f.rate * *mean / (deviation + f.epsilon);
}

}  // namespace thinwire::cuda
