// A device for tests that is not the host, made of the CPU. What tensor/device.h leaves open it
// does in the least convenient way: work without a result in host memory is done when its thread
// next waits, so that a tensor handed to another thread too early holds other numbers. Memory of
// the host where the device's is wanted, and the other way round, fails the test.
#pragma once

#include "stage_server/stage/stage.h"

namespace thinwire {

// The device and its codec kernels live as long as the process; ops are the CPU's, on one thread.
Backend NewLateBackend();

}  // namespace thinwire
