// Elementwise kernels, the same bits as the CPU's; contracts in nn/ops.h.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error Relu(CudaDevice* device, const TensorView& x, const TensorView& y);
Error ReluBackward(CudaDevice* device, const TensorView& y, const TensorView& dy,
                   const TensorView& dx);
Error Add(CudaDevice* device, const TensorView& a, const TensorView& b, const TensorView& sum);
Error Convert(CudaDevice* device, const TensorView& from, const TensorView& to);
Error Combine(CudaDevice* device, const Combination& arguments);
Error Zero(CudaDevice* device, float* values, int64_t n);

}  // namespace thinwire::cuda
