// A device for tests that runs on the CPU but is not the host. It does as late as possible what
// tensor/device.h leaves open. Work whose result is not in host memory is done only when its thread
// next waits. A tensor handed to another thread too early therefore holds wrong numbers. Host
// memory in place of device memory, or the reverse, fails the test.
#pragma once

#include "stage_server/stage/stage.h"

namespace thinwire {

// Makes a backend whose device and codec kernels live as long as the process; its ops are the
// CPU's, on one thread.
Backend NewLateBackend();

}  // namespace thinwire
