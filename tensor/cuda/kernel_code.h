// Checks whether a device can run our kernels at all.
#pragma once

#include <cuda_runtime.h>

#include "tensor/error.h"

namespace thinwire {

// Waits, and returns FailedPrecondition with the device and its compute capability if this build
// has no code for it (third_party/cuda/compile.bzl lists what a build is for). `device` is the
// thread's current device.
Error CheckRunsKernels(int device, cudaStream_t stream);

}  // namespace thinwire
