// Whether a device runs our kernels at all.
#pragma once

#include <cuda_runtime.h>

#include "tensor/error.h"

namespace thinwire {

// FailedPrecondition names the device and its compute capability when this build has no code for
// it (third_party/cuda/compile.bzl says for which a build is). `device` is the thread's; waits.
Error CheckRunsKernels(int device, cudaStream_t stream);

}  // namespace thinwire
