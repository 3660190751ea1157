// Elementwise kernels with the same bits as the CPU's; contracts in nn/ops.h.
#pragma once

#include <cstdint>

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error Relu(CudaDevice* device, const TensorView& x, const TensorView& y);
Error ReluBackward(CudaDevice* device, const TensorView& y, const TensorView& dy,
                   const TensorView& dx);
Error Add(CudaDevice* device, const TensorView& a, const TensorView& b, const TensorView& sum);
Error Convert(CudaDevice* device, const TensorView& from, const TensorView& to);
// Convert n values of `type` to fp32, and fp32 to `type`.
Error Widen(CudaDevice* device, const void* values, DType type, int64_t n, float* wide);
Error Narrow(CudaDevice* device, const float* values, int64_t n, DType type, void* narrow);
Error Combine(CudaDevice* device, const Combination& arguments);
Error Zero(CudaDevice* device, float* values, int64_t n);

}  // namespace thinwire::cuda
