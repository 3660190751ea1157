// Layer norm and RMS norm; contracts in nn/ops.h.
//
// A warp computes a row, or a block if the row has more than 1024 features. It reads the row three
// times, twice from the cache: for its mean (not for RMS norm), for its variance, and to normalise.
// Backward holds a warp's row in registers and reads (x, dy) once, if accesses are wide. Otherwise
// it reads them for dx and once more for the sums over rows, dscale and dbias (columns.cuh).
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

Error NormalizeRows(CudaDevice* device, const LayerNormForward& arguments);
Error NormalizeRowsBackward(CudaDevice* device, const LayerNormBackward& arguments);

}  // namespace thinwire::cuda
