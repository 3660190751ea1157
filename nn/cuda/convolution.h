// Convolutions as libraries compute them: packed operands, no bias, results overwritten. conv2d.h
// makes of it what layers want. Twins: convolution_cudnn.cc for GPUs, convolution_emulated.cc (the
// CPU's) for the emulator.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "nn/cuda/preparation.h"
#include "nn/ops.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire::cuda {

// x: [n, height, width, in]   w: [out, kernel, kernel, in]   y: [n, h', w', out], all in the
// compute type and aligned to 16 bytes; dw: as w, of sums in fp32, in fp32 or rounded to the
// compute type, whatever *type becomes; the memory is for fp32. Submitted to the calling thread's
// stream.
//
// The first call of a kind and n prepares it (plans, perhaps timings) and cannot be recorded:
// FailedPrecondition. Unimplemented when the library has no kernel for it.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual Error Forward(int64_t n, const void* x, const void* w, void* y) = 0;
  virtual Error BackwardData(int64_t n, const void* dy, const void* w, void* dx) = 0;
  virtual Error BackwardWeights(int64_t n, const void* x, const void* dy, void* dw,
                                DType* type) = 0;
};

// What the convolutions of one Ops share: a library's handle. Outlives them; one thread at a time
// uses it and them.
class ConvolutionLibrary {
 public:
  virtual ~ConvolutionLibrary() = default;
  // Perhaps the same for equal specs: it keeps no weights. The bias of `spec` is not looked at.
  virtual std::shared_ptr<Convolution> New(const Conv2dSpec& spec) = 0;
};

std::unique_ptr<ConvolutionLibrary> NewConvolutionLibrary(CudaDevice* device,
                                                          const OpsOptions& options);

// h' or w' of an extent of x.
inline int64_t OutputExtent(const Conv2dSpec& spec, int64_t extent) {
  return (extent + 2 * spec.padding - spec.kernel) / spec.stride + 1;
}

}  // namespace thinwire::cuda
