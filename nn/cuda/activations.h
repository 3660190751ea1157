// GELU and SwiGLU; contracts in nn/ops.h. Results are within a few units in the last place of the
// CPU's, which uses another exponential.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error Gelu(CudaDevice* device, GeluKind kind, const TensorView& x, const TensorView& y);
Error GeluBackward(CudaDevice* device, GeluKind kind, const TensorView& x, const TensorView& dy,
                   const TensorView& dx);
Error Swiglu(CudaDevice* device, const TensorView& x, const TensorView& y);
Error SwigluBackward(CudaDevice* device, const TensorView& x, const TensorView& dy,
                     const TensorView& dx);

}  // namespace thinwire::cuda
