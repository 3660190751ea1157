// How long a GPU takes for what a thread submits; contract in nn/ops.h.
#pragma once

#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// By events of the thread's stream: gaps count in which it waits for the host's next launch. The
// caller deletes *timer.
Error NewWorkTimer(CudaDevice* device, WorkTimer** timer);

}  // namespace thinwire::cuda
