// Copies by the device's engines between its memory and page-locked memory of two processes.
#pragma once

#include <memory>

#include "tensor/cuda/device.h"
#include "tensor/direct_copies.h"

namespace thinwire {

// Makes the copies of `device`, which outlives them.
std::unique_ptr<DirectCopies> NewCudaDirectCopies(CudaDevice* device);

}  // namespace thinwire
