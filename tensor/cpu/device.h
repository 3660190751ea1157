// The CPU as a Device: heap memory, kept for reuse (tensor/host_pool.h).
#pragma once

#include "tensor/device.h"

namespace thinwire {

// Never destroyed: gRPC frees slices of its memory on threads that may outlive main.
Device* CpuDevice();

}  // namespace thinwire
