// Convolutions as libraries compute them: packed operands, no bias, results overwritten. weighted.h
// makes layers' convolutions of them. There are two implementations: convolution_cudnn.cc for GPUs
// and convolution_emulated.cc (on the CPU) for the emulator.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "nn/cuda/preparation.h"
#include "nn/ops.h"
#include "tensor/cuda/device.h"
#include "tensor/cuda/error.h"

namespace thinwire::cuda {

// A convolution on the calling thread's stream.
//   x: [n, height, width, in]   w: [out, kernel, kernel, in]   y: [n, h', w', out]
// All are in the compute type and aligned to 16 bytes. dw has w's shape and sums in fp32. It is
// fp32 or rounded to the compute type, which *type says; its memory has room for fp32.
//
// The first call of a pass and n prepares it (plans, perhaps timings) and cannot be recorded:
// FailedPrecondition. Unimplemented if the library has no kernel for it.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual Error Forward(int64_t n, const void* x, const void* w, void* y) = 0;
  virtual Error BackwardData(int64_t n, const void* dy, const void* w, void* dx) = 0;
  virtual Error BackwardWeights(int64_t n, const void* x, const void* dy, void* dw,
                                DType* type) = 0;
};

// State shared by the convolutions of one Ops: a library's handle. It outlives them. One thread at
// a time uses it and them.
class ConvolutionLibrary {
 public:
  virtual ~ConvolutionLibrary() = default;
  // Returns a convolution, possibly the same for equal specs, as it keeps no weights. Ignores the
  // bias of `spec`.
  virtual std::shared_ptr<Convolution> New(const Conv2dSpec& spec) = 0;
};

std::unique_ptr<ConvolutionLibrary> NewConvolutionLibrary(CudaDevice* device,
                                                          const OpsOptions& options);

// Returns h' or w' for an extent of x.
inline int64_t OutputExtent(const Conv2dSpec& spec, int64_t extent) {
  return (extent + 2 * spec.padding - spec.kernel) / spec.stride + 1;
}

}  // namespace thinwire::cuda
