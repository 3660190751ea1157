// The CPU as a Device: host memory from a pool of power-of-two size classes.
#pragma once

#include "tensor/device.h"

namespace thinwire {

// Never destroyed: gRPC frees slices of its memory on threads that may outlive main.
Device* CpuDevice();

}  // namespace thinwire
