// Measures how long a GPU takes for what a thread submits; contract in nn/ops.h.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// Makes a timer, which the caller deletes. It uses events of the thread's stream, so gaps in which
// that waits for the host's next launch count.
Error NewWorkTimer(CudaDevice* device, WorkTimer** timer);

}  // namespace thinwire::cuda
