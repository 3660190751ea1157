// The CPU as a Device: heap memory that is kept for reuse (tensor/host_pool.h).
#pragma once

#include "tensor/device.h"

namespace thinwire {

// Returns the device, which is never destroyed: gRPC frees slices of its memory on threads that may
// outlive main.
Device* CpuDevice();

}  // namespace thinwire
