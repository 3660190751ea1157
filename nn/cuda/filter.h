// Filters between the layout of parameters, [out, in, pixels] (PyTorch's), and channels-last,
// [out, pixels, in], in which convolution.h computes.
#pragma once

#include <cstdint>

#include "tensor/cuda/device.h"
#include "tensor/dtype.h"

namespace thinwire::cuda {

struct FilterShape {
  int64_t out = 0, in = 0;
  int64_t pixels = 1;

  int64_t elements() const { return out * in * pixels; }
};

// packed, of `type` (fp32 or bf16, rounded to nearest even), becomes `weights` channels-last.
Error PackFilter(CudaDevice* device, const FilterShape& shape, const float* weights, DType type,
                 void* packed);

// gradient += packed, of `type`, each in its layout.
Error AddPackedGradient(CudaDevice* device, const FilterShape& shape, const void* packed,
                        DType type, float* gradient);

}  // namespace thinwire::cuda
